// The smallest program: it ends at once. The row `spawn.small` starts it.
#include "sys.h"

void _start(void) { exit(0); }
