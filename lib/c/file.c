/*
 * Files: a descriptor is the index of the first of the file's four portals. Descriptors 0, 1 and 2, below any
 * index that a file can have, stand for the paths in the start-up page, which are opened when they are first used.
 */
#include "internal.h"

#include <string.h>
#include <sys/lock.h>

#define CONSOLE "/dev/console"
#define PIPE "/pipe/"

enum { UNUSED, OPEN, CLOSED };
static struct {
    int state, portal;
} standard[3];
static struct __lock lock;

/* Open files whose reads can wait: read returns what the first call brings. A bit for each portal index. */
static unsigned char streams[NPORTALS / 8];
/* Descriptors that open returned and close has not taken back: any other is refused here, since to invoke a portal that
   the domain does not hold is a fault. */
static unsigned char opened[NPORTALS / 8];

static int starts_with(const char *path, const char *prefix) {
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Path in the start-up page; they are PATHLEN bytes apart. */
static const char *standard_path(int fd, char path[PATHLEN + 1]) {
    unsigned long address = STARTUP_STDIN + (unsigned long)fd * (STARTUP_STDOUT - STARTUP_STDIN);
    memcpy(path, __startup(address), PATHLEN);
    path[PATHLEN] = 0;
    return path;
}

static int open_path(const char *path) {
    long p[5];
    if (*path == 0) {
        errno = ENOENT;
        return -1;
    }
    if (!__pack(path, p, 5))
        return -1;
    int server = starts_with(path, CONSOLE) ? SYS_CONSOLE_OPEN
                 : starts_with(path, PIPE)  ? SYS_PIPE_OPEN
                                            : SYS_FILE_OPEN;
    int first = (int)__checked(REPEATED(portal_call(server, p[0], p[1], p[2], p[3], p[4])));
    if (first < 0)
        return -1;
    unsigned char bit = (unsigned char)(1 << first % 8);
    unsigned char *byte = &streams[first % NPORTALS / 8];
    if (server == SYS_FILE_OPEN)
        __atomic_fetch_and(byte, (unsigned char)~bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(&opened[first % NPORTALS / 8], bit, __ATOMIC_RELAXED);
    return first;
}

/* First portal of a descriptor, or -1 and errno. */
static int portal_of(int fd) {
    int portal = -1;
    if (fd >= FIRST_FREE && fd <= NPORTALS - FILE_PORTALS && opened[fd / 8] >> fd % 8 & 1)
        return fd;
    if (fd < 0 || fd > 2) {
        errno = EBADF;
        return -1;
    }
    __retarget_lock_acquire(&lock);
    if (standard[fd].state == UNUSED) {
        char path[PATHLEN + 1];
        standard[fd].portal = open_path(standard_path(fd, path));
        if (standard[fd].portal >= 0)
            standard[fd].state = OPEN;
    } else if (standard[fd].state == CLOSED) {
        errno = EBADF;
    }
    if (standard[fd].state == OPEN)
        portal = standard[fd].portal;
    __retarget_lock_release(&lock);
    return portal;
}

int open(const char *path, int flags, ...) {
    (void)flags; /* the file's server refuses what it cannot do */
    return open_path(path);
}

int close(int fd) {
    int portal = -1;
    if (fd >= 0 && fd <= 2) {
        __retarget_lock_acquire(&lock);
        int state = standard[fd].state;
        portal = standard[fd].portal;
        standard[fd].state = CLOSED;
        __retarget_lock_release(&lock);
        if (state == UNUSED)
            return 0;
        if (state == CLOSED) {
            errno = EBADF;
            return -1;
        }
    } else if ((portal = portal_of(fd)) < 0) {
        return -1;
    }
    unsigned char bit = (unsigned char)(1 << portal % 8);
    if (!(__atomic_fetch_and(&opened[portal / 8], (unsigned char)~bit, __ATOMIC_RELAXED) & bit)) {
        errno = EBADF; /* another thread was quicker */
        return -1;
    }
    long result = __checked(REPEATED(portal_call(portal + FILE_CLOSE)));
    portal_call(SYS_PORTAL_CLOSE, portal, FILE_PORTALS); /* the portals go back whatever the server said */
    return result < 0 ? -1 : 0;
}

ssize_t read(int fd, void *buffer, size_t size) {
    int portal = portal_of(fd);
    if (portal < 0)
        return -1;
    int stream = streams[portal / 8] >> portal % 8 & 1;
    size_t done = 0, chunk, got;
    do {
        long words[MAX_RESULTS];
        chunk = size - done < IO_BYTES ? size - done : IO_BYTES;
        long count = __checked(REPEATED(portal_call_results(words, portal + FILE_READ, chunk)));
        if (count < 0)
            return done ? (ssize_t)done : -1;
        got = (size_t)count < chunk ? (size_t)count : chunk;
        memcpy((char *)buffer + done, words, got);
        done += got;
    } while (got == chunk && done < size && !stream);
    return (ssize_t)done;
}

ssize_t write(int fd, const void *buffer, size_t size) {
    int portal = portal_of(fd);
    if (portal < 0)
        return -1;
    size_t done = 0;
    while (done < size) {
        size_t chunk = size - done < IO_BYTES ? size - done : IO_BYTES;
        long w[IO_BYTES / sizeof(long)] = {0};
        memcpy(w, (const char *)buffer + done, chunk);
        /* What is left, this call's bytes among it: the console keeps together what was written together. */
        long left = (long)(size - done);
        long count = __checked(REPEATED(portal_call(portal + FILE_WRITE, left, w[0], w[1], w[2], w[3])));
        if (count < 0)
            return done ? (ssize_t)done : -1;
        if (count == 0)
            break;
        done += (size_t)count < chunk ? (size_t)count : chunk;
    }
    return (ssize_t)done;
}

off_t lseek(int fd, off_t offset, int whence) {
    int portal = portal_of(fd);
    return portal < 0 ? -1 : __checked(REPEATED(portal_call(portal + FILE_SEEK, offset, whence)));
}

off_t seek(int fd, off_t offset, int whence) { return lseek(fd, offset, whence); }

int isatty(int fd) {
    char path[PATHLEN + 1];
    if (fd >= 0 && fd <= 2 && standard[fd].state != CLOSED && starts_with(standard_path(fd, path), CONSOLE))
        return 1;
    errno = ENOTTY;
    return 0;
}
