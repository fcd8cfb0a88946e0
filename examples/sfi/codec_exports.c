/* Made from codec.h by `pebble sfi stubs`: change that, not this. */
#include <pebble_plugin.h>

PBL_EXPORT(checksum, "npri")
PBL_EXPORT(pack, "smriwi")
PBL_EXPORT(unpack, "smriwi")
PBL_EXPORT(mean, "smriw")
PBL_EXPORT(knows, "smr")
PBL_EXPORT(describe, "smi")
PBL_EXPORT(halvings, "smi")
PBL_EXPORT(watch, "smo")
