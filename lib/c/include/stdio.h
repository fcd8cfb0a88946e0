/* The C library's own, and what it leaves out for streams that several threads use. */
#ifndef PEBBLE_STDIO_H
#define PEBBLE_STDIO_H

#include_next <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Between them all that the calling thread does with the stream is one piece. Single calls, printf for one, are in any case. */
void flockfile(FILE *file);
int ftrylockfile(FILE *file); /* 0: it is locked */
void funlockfile(FILE *file);

/* They take the lock, too, if the caller has not. */
#undef getc_unlocked
#undef getchar_unlocked
#undef putc_unlocked
#undef putchar_unlocked
int getc_unlocked(FILE *file);
int getchar_unlocked(void);
int putc_unlocked(int c, FILE *file);
int putchar_unlocked(int c);

#ifdef __cplusplus
}
#endif
#endif
