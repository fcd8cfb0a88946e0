/*
 * Reads and writes at a place, and of several pieces.
 *
 * The file server knows where a file stands, and reads and writes there alone. So pread and pwrite move there and back, and keep the
 * program's other threads off meanwhile (file.c).
 */
#include "descriptor.h"

#include <limits.h>
#include <sys/uio.h>

static long fail(int error) {
    errno = error;
    return -1;
}

/* The first portal of a file that has places, for this use; or -1 and errno. */
static int placed(int fd, int wanted, off_t offset) {
    int use, portal = __descriptor(fd, &use);
    if (portal < 0)
        return -1;
    if (use & STREAM)
        return (int)fail(ESPIPE);
    if (!(use & wanted))
        return (int)fail(EBADF);
    return offset < 0 ? (int)fail(EINVAL) : portal;
}

/* Keeps all others off, and moves to offset, or to the end if that is behind it: 1. Else 0, or -1 and errno. here: where the file stood. */
static int enter(int portal, off_t offset, off_t *here) {
    __retarget_lock_acquire(&__places);
    *here = __seek_on(portal, 0, SEEK_CUR);
    off_t end = *here < 0 ? -1 : __seek_on(portal, 0, SEEK_END);
    if (end < 0 || offset > end)
        return end < 0 ? -1 : 1;
    return __seek_on(portal, offset, SEEK_SET) < 0 ? -1 : 0;
}

/* Back again, if the file has not become shorter. */
static ssize_t leave(int portal, off_t here, ssize_t result) {
    int error = errno;
    if (here >= 0)
        __seek_on(portal, here, SEEK_SET);
    errno = error;
    __retarget_lock_release(&__places);
    return result;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) {
    off_t here;
    int portal = placed(fd, READS, offset);
    if (portal < 0)
        return -1;
    int behind = enter(portal, offset, &here);
    return leave(portal, here, behind < 0 ? -1 : behind > 0 ? 0 : __read_on(portal, buffer, size));
}

/* A file that is opened to append is written at its end here, too. */
ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) {
    off_t here;
    int portal = placed(fd, WRITES, offset);
    if (portal < 0 || size == 0)
        return portal < 0 ? -1 : 0;
    int behind = enter(portal, offset, &here);
    int there = behind == 0 || (behind > 0 && __lengthen(portal, offset) == 0);
    return leave(portal, here, there ? __write_on(portal, buffer, size) : -1);
}

/* Bytes of all pieces, or -1 and errno. */
static ssize_t total(const struct iovec *pieces, int count) {
    size_t all = 0;
    if (count <= 0 || count > IOV_MAX)
        return fail(EINVAL);
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(all, pieces[i].iov_len, &all) || all > PTRDIFF_MAX)
            return fail(EINVAL);
    return (ssize_t)all;
}

ssize_t readv(int fd, const struct iovec *pieces, int count) {
    ssize_t all = total(pieces, count), got;
    if (all < 0 || count == 1)
        return all < 0 ? -1 : read(fd, pieces[0].iov_base, pieces[0].iov_len);
    char *bytes = malloc((size_t)all + 1);
    if (bytes == NULL)
        return -1;
    const char *next = bytes;
    size_t rest = (got = read(fd, bytes, (size_t)all)) < 0 ? 0 : (size_t)got;
    for (int i = 0; rest > 0; i++) {
        size_t some = rest < pieces[i].iov_len ? rest : pieces[i].iov_len;
        memcpy(pieces[i].iov_base, next, some);
        next += some;
        rest -= some;
    }
    free(bytes);
    return got;
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    ssize_t all = total(pieces, count);
    if (all < 0 || count == 1)
        return all < 0 ? -1 : write(fd, pieces[0].iov_base, pieces[0].iov_len);
    char *bytes = malloc((size_t)all + 1), *next = bytes;
    if (bytes == NULL)
        return -1;
    for (int i = 0; i < count; next += pieces[i++].iov_len)
        if (pieces[i].iov_len > 0)
            memcpy(next, pieces[i].iov_base, pieces[i].iov_len);
    all = write(fd, bytes, (size_t)all);
    free(bytes);
    return all;
}
