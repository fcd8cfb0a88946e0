/* libpng's configuration, as it comes. */
#include "scripts/pnglibconf.h.prebuilt"
