/* Directories, for the C library's dirent.h: the names in one, in the order in which the file server tells them. */
#ifndef PEBBLE_SYS_DIRENT_H
#define PEBBLE_SYS_DIRENT_H

#include <sys/types.h>

#define DT_UNKNOWN 0
#define DT_DIR 4
#define DT_REG 8

struct dirent {
    ino_t d_ino; /* a number, from 1: files have none of their own */
    unsigned char d_type;
    char d_name[40 + 1]; /* paths have 40 bytes at most */
};

typedef struct __directory DIR;

#endif
