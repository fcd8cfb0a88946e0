/* pebble_plugin.h: for code inside a fault domain. */
#ifndef PEBBLE_PLUGIN_H
#define PEBBLE_PLUGIN_H

/* Makes a function an entry point of the module, with a portal specification: PBL_EXPORT(add, "smii"). */
#define PBL_EXPORT(name, spec) \
    __asm__(".pushsection .pbl.export,\"\",@progbits\n\t.asciz \"" #name "=" spec "\"\n\t.popsection");

#endif
