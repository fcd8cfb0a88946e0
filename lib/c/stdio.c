/*
 * stdin, stdout and stderr over descriptors 0, 1 and 2. Output is line-buffered on the console and to stderr, else
 * fully buffered, and written out by exit. Linked only into programs that use them.
 */
#include "internal.h"

#include <stdio-bufio.h>
#include <stdio.h>

static struct __lock locks[3];
static char buffers[3][256];

/* The library's own initialiser, plus the lock that it leaves out. */
#define STREAM(n, direction, flags)                                                                              \
    {                                                                                                            \
        .xfile = FDEV_SETUP_EXT(__bufio_put, __bufio_get, __bufio_flush, __bufio_close, __bufio_seek,            \
                                __bufio_setvbuf, (direction) | __SBUF),                                          \
        .fd = n, .bflags = flags, .buf = buffers[n], .size = sizeof buffers[n], .read = read, .write = write,    \
        .lseek = lseek, .close = close, .lock = &locks[n],                                                       \
    }

static struct __file_bufio in = STREAM(0, _FDEV_SETUP_READ, 0);
static struct __file_bufio out = STREAM(1, _FDEV_SETUP_WRITE, __BLBF);
static struct __file_bufio err = STREAM(2, _FDEV_SETUP_WRITE, __BLBF);

FILE *const stdin = &in.xfile.cfile.file;
FILE *const stdout = &out.xfile.cfile.file;
FILE *const stderr = &err.xfile.cfile.file;

__attribute__((constructor)) static void before_main(void) {
    if (!isatty(1))
        out.bflags = 0;
}

__attribute__((destructor)) static void at_exit(void) {
    fflush(stdout);
    fflush(stderr);
}
