/* Files and memory as pages. */
#ifndef PEBBLE_SYS_MMAN_H
#define PEBBLE_SYS_MMAN_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4

#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_ANON MAP_ANONYMOUS
#define MAP_FAILED ((void *)-1)

/*
 * Memory of whole pages. Of a file of the archive of 16 KiB or more, for reading: its own pages, without a copy. Of another file, or for writing,
 * with MAP_PRIVATE: a copy of what is in it now. With MAP_ANONYMOUS and MAP_PRIVATE: zeros.
 *
 * ENODEV: MAP_SHARED of what others may write, or for writing. ENOTSUP: MAP_FIXED, or shared memory without a file. EACCES: the file is not
 * open for reading, or PROT_EXEC. The place is the system's to choose, and a hint is not heeded.
 */
void *mmap(void *hint, size_t size, int protection, int flags, int fd, off_t offset);
/* All of what one mmap has made, and no part of it: EINVAL. */
int munmap(void *start, size_t size);

#ifdef __cplusplus
}
#endif
#endif
