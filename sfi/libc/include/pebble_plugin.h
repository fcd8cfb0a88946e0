/* pebble_plugin.h: for code inside a fault domain. */
#ifndef PEBBLE_PLUGIN_H
#define PEBBLE_PLUGIN_H

/* Makes a function an entry point of the module, with a portal specification: PBL_EXPORT(add, "smii"). */
#define PBL_EXPORT(name, spec) \
    __asm__(".pushsection .pbl.export,\"\",@progbits\n\t.asciz \"" #name "=" spec "\"\n\t.popsection");

/* For `pebble sfi stubs`, which makes typed bindings for the host out of a header: nothing to the compiler.
 * PBL_PORTAL(np) before a prototype: stack and state of the portal. Behind a pointer argument: the function reads (PBL_R) so many elements,
 * reads and writes them (PBL_W), or may reach them for as long as it lives (PBL_O); PBL_STRING: a text, up to its NUL. */
#define PBL_PORTAL(stack_and_state)
#define PBL_R(count)
#define PBL_W(count)
#define PBL_O(count)
#define PBL_STRING

#endif
