/* Reads and writes of several pieces at once. */
#ifndef PEBBLE_SYS_UIO_H
#define PEBBLE_SYS_UIO_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct iovec {
    void *iov_base;
    size_t iov_len;
};

/* One read or write of all: pieces of other threads do not come in between. */
ssize_t readv(int fd, const struct iovec *pieces, int count);
ssize_t writev(int fd, const struct iovec *pieces, int count);

#ifdef __cplusplus
}
#endif
#endif
