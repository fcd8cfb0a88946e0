/* Replaces libc.c: a module of functions has no `_start` that fills this in, and its C library wants the end of an auxiliary vector. */
#include "libc.h"
static size_t none[2];
struct __libc __libc = {.auxv = none};
size_t __hwcap;
char *__progname = 0, *__progname_full = 0;
weak_alias(__progname, program_invocation_short_name);
weak_alias(__progname_full, program_invocation_name);
