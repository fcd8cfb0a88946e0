/* What file.c knows of a descriptor, for those that do more with one. */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include "internal.h"

#include <sys/lock.h>

/* 0: it is not open. */
enum {
    OPEN = 1,
    STREAM = 2, /* not the file server's: reads can wait, and return what the first call brings */
    TERMINAL = 4,
    READS = 8,
    WRITES = 16,
    APPENDS = 32,
    BEHIND = 64, /* its place is behind its end */
};

/* First portal of a descriptor and what may be done with it; or -1 and errno. */
int __descriptor(int fd, int *use);

/* Whoever moves in a file of the file server, or goes on where it stands, has this. Nobody waits in a file, so neither does anybody here
   for long. */
extern struct __lock __places;

/* Where a file of the file server stands then, or -1 and errno. */
off_t __seek_on(int portal, off_t offset, int whence);
/* Zeroes from the end up to this length, and then the place is there; or -1 and errno. */
int __lengthen(int portal, off_t length);
ssize_t __read_on(int portal, void *buffer, size_t size);
ssize_t __write_on(int portal, const void *buffer, size_t size);

#endif
