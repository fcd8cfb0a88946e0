/* The C library's own, for as many descriptors as there can be: they are indices of portals. */
#ifndef FD_SETSIZE
#define FD_SETSIZE 4096
#endif
#include_next <sys/_select.h>
