/* sys/sendfile.h: from a file to whatever is written to. lib/c/sendfile.c. */
#ifndef PEBBLE_SYS_SENDFILE_H
#define PEBBLE_SYS_SENDFILE_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Up to count bytes of the file in, from where it stands on, or from *offset, which then says where the next are. EINVAL: in is no file. */
ssize_t sendfile(int out, int in, off_t *offset, size_t count);

#ifdef __cplusplus
}
#endif
#endif
