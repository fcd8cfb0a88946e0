/*
 * From a file to a file, a pipe, or the console, without the caller's memory in between.
 *
 * What can be mapped is written from where it lies: the archive's pages are lent to whoever writes. All else goes through a few pages of the
 * heap, read at its place, so that what has been read and could not be written is not lost.
 */
#include "descriptor.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { PIECE = 16 * PAGE_BYTES };

static ssize_t fail(int error) {
    errno = error;
    return -1;
}

/* As many as could be written, -1 if none. */
static ssize_t send_mapped(int out, int in, off_t from, size_t count) {
    size_t before = (size_t)from % PAGE_BYTES;
    char *pages = mmap(NULL, before + count, PROT_READ, MAP_SHARED, in, from - (off_t)before);
    if (pages == MAP_FAILED)
        return -1;
    ssize_t sent = write(out, pages + before, count);
    int error = errno;
    munmap(pages, before + count);
    errno = error;
    return sent;
}

static ssize_t send_copied(int out, int in, off_t from, size_t count) {
    char *bytes = memalign(PAGE_BYTES, count < PIECE ? count : PIECE);
    size_t done = 0;
    ssize_t sent = bytes == NULL ? -1 : 1;
    while (sent > 0 && done < count) {
        sent = pread(in, bytes, count - done < PIECE ? count - done : PIECE, from + (off_t)done);
        if (sent > 0)
            sent = write(out, bytes, (size_t)sent);
        done += sent > 0 ? (size_t)sent : 0;
    }
    int error = errno;
    free(bytes);
    errno = error;
    return done > 0 ? (ssize_t)done : sent;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) {
    struct stat about;
    int use;
    if (fstat(in, &about) < 0 || __descriptor(out, &use) < 0)
        return -1;
    if (!S_ISREG(about.st_mode))
        return fail(EINVAL);
    if (!(use & WRITES))
        return fail(EBADF);
    off_t from = offset != NULL ? *offset : lseek(in, 0, SEEK_CUR);
    if (from < 0)
        return fail(EINVAL);
    off_t left = about.st_size > from ? about.st_size - from : 0;
    if (count > (size_t)left)
        count = (size_t)left;
    if (count == 0)
        return 0;
    ssize_t sent = send_mapped(out, in, from, count);
    if (sent < 0 && errno == ENODEV)
        sent = send_copied(out, in, from, count);
    if (sent > 0 && offset != NULL)
        *offset = from + sent;
    else if (sent > 0)
        lseek(in, from + sent, SEEK_SET);
    return sent;
}
