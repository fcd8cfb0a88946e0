/*
 * Pages that go through a pipe without being copied: they change places with those of whoever is at the other side, if both flip.
 *
 * Only whole pages do, and no others than the caller's own. All other bytes are copied, as read and write do it.
 */
#include "descriptor.h"

#include <pebble.h>

/* So many bytes went, 0 at the end; -1 and errno, EAGAIN: they are to be copied. */
static ssize_t flip(int fd, int wanted, void *pages, size_t size) {
    int use, portal = __descriptor(fd, &use);
    if (portal < 0)
        return -1;
    unsigned long count = size / PAGE_BYTES < PAGE_BYTES ? size / PAGE_BYTES : PAGE_BYTES - 1;
    errno = EAGAIN;
    if (!(use & wanted) || (unsigned long)pages % PAGE_BYTES || count == 0)
        return -1;
    long flipped = __checked(REPEATED(portal_call(portal + FILE_SEEK, (long)((unsigned long)pages | count), (long)SEEK_FLIP)));
    return flipped < 0 ? -1 : (ssize_t)((unsigned long)flipped * PAGE_BYTES);
}

/* Files, the console and others do not know of it. */
static int copies(void) { return errno == EAGAIN || errno == EINVAL; }

ssize_t read_flip(int fd, void *pages, size_t size) {
    ssize_t flipped = flip(fd, READS, pages, size);
    return flipped < 0 && copies() ? read(fd, pages, size) : flipped;
}

ssize_t write_flip(int fd, void *pages, size_t size) {
    size_t done = 0;
    while (done < size) {
        char *at = (char *)pages + done;
        ssize_t count = flip(fd, WRITES, at, size - done);
        if (count < 0 && copies())
            count = write(fd, at, size - done);
        if (count <= 0)
            return done ? (ssize_t)done : count;
        done += (size_t)count;
    }
    return (ssize_t)done;
}
