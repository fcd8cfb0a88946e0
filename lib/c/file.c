/*
 * Files: a descriptor is the index of the first of the file's portals. Descriptors 0, 1 and 2, below any
 * index that a file can have, stand for the paths in the start-up page, which are opened when they are first used.
 *
 * What a descriptor may be used for is kept here, by its index, for a server does not know how the file was opened, and to invoke a
 * portal that the domain does not hold is a fault: whatever open did not return, or close has taken back, is EBADF.
 */
#include "descriptor.h"

#include <pebble-interfaces.h>
#include <string.h>
#include <sys/lock.h>
#include <sys/stat.h>

#define CONSOLE "/dev/console"
#define PIPE "/pipe/"

/* What is known of an open file. */
static unsigned char files[NPORTALS];

enum { UNUSED, READY, CLOSED };
static struct {
    int state, portal;
} standard[3];
static struct __lock lock;
struct __lock __places;

static int fail(int error) {
    errno = error;
    return -1;
}

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

/* A call about a path: to a portal that all have, or to one that is opened by its name when it is first wanted. */
static int call_path(int portal, const char *path) {
    long p[5];
    if (path == NULL)
        return fail(EFAULT);
    if (*path == 0)
        return fail(ENOENT);
    if (!__pack(path, p, 5))
        return -1;
    return (int)__checked(REPEATED(portal_call(portal, p[0], p[1], p[2], p[3], p[4])));
}

static int call_named(int *portal, const char *name, const char *path) {
    return __opened(portal, name) ? call_path(*portal, path) : -1;
}

/* Closes the file's portals at the server, and gives them back whatever it says. */
static long give_back(int first) {
    long result = __checked(REPEATED(portal_call(first + FILE_CLOSE)));
    __close_pages(first);
    portal_call(SYS_PORTAL_CLOSE, first, FILE_PORTALS);
    return result;
}

/* Of the file server. Where a file is made, it is by one call, so of two programs that want to make it one does. */
static int open_file(const char *path, int flags) {
    static int make;
    for (;;) {
        int first = -1;
        if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL)) {
            first = call_path(SYS_FILE_OPEN, path);
            if (first >= 0 || errno != ENOENT || !(flags & O_CREAT))
                return first;
        }
        first = call_named(&make, FILE_MAKE_NAME, path);
        if (first >= 0 || errno != EEXIST || flags & O_EXCL)
            return first;
    }
}

/* What is wanted beyond reading: the server says at once if it cannot be. */
static int prepare(int first, int flags) {
    if ((flags & O_ACCMODE) == O_RDONLY)
        return 0;
    if (flags & O_TRUNC)
        return (int)__checked(REPEATED(portal_call(first + FILE_SEEK, 0L, (long)SEEK_CUT)));
    return (int)__checked(REPEATED(portal_call(first + FILE_WRITE, 0L)));
}

static int open_path(const char *path, int flags) {
    int kind = path == NULL ? 0 : starts_with(path, CONSOLE) ? STREAM | TERMINAL : starts_with(path, PIPE) ? STREAM : 0;
    int first = kind & TERMINAL ? call_path(SYS_CONSOLE_OPEN, path)
                : kind & STREAM ? call_path(SYS_PIPE_OPEN, path)
                                : open_file(path, flags);
    if (first < 0)
        return -1;
    if (!(kind & STREAM) && prepare(first, flags) < 0) {
        int error = errno;
        give_back(first);
        return fail(error);
    }
    int access = flags & O_ACCMODE;
    kind |= OPEN | (access != O_WRONLY ? READS : 0) | (access != O_RDONLY ? WRITES : 0) | (flags & O_APPEND ? APPENDS : 0);
    __atomic_store_n(&files[first], (unsigned char)kind, __ATOMIC_RELAXED);
    return first;
}

/* What a standard file is opened for. Of files those for writing are written at their end, as several may be one. */
static int standard_flags(int fd, const char *path) {
    int file = !starts_with(path, CONSOLE) && !starts_with(path, PIPE);
    return fd == 0 ? (file ? O_RDONLY : O_RDWR) : O_RDWR | (file ? O_APPEND : 0);
}

/* First portal of a descriptor, or -1 and errno. */
static int portal_of(int fd) {
    int portal = -1;
    if (fd >= FIRST_FREE && fd <= NPORTALS - FILE_PORTALS && files[fd] != 0)
        return fd;
    if (fd < 0 || fd > 2)
        return fail(EBADF);
    __retarget_lock_acquire(&lock);
    if (standard[fd].state == UNUSED) {
        char path[PATHLEN + 1];
        standard_path(fd, path);
        standard[fd].portal = open_path(path, standard_flags(fd, path));
        if (standard[fd].portal >= 0)
            standard[fd].state = READY;
    } else if (standard[fd].state == CLOSED) {
        errno = EBADF;
    }
    if (standard[fd].state == READY)
        portal = standard[fd].portal;
    __retarget_lock_release(&lock);
    return portal;
}

/* The same, for a file that may be used so. */
static int portal_for(int fd, int use) {
    int portal = portal_of(fd);
    return portal < 0 || files[portal] & use ? portal : fail(EBADF);
}

/*
 * The server lets nobody go behind a file's end. A place there is kept here, until the file is that long or something is written, with
 * zeroes up to it.
 */
enum { PLACES = 16 };
static struct {
    int portal;
    off_t place;
} behind[PLACES];

static void set_flag(int portal, int flag, int on) {
    unsigned char flags = files[portal];
    __atomic_store_n(&files[portal], (unsigned char)(on ? flags | flag : flags & ~flag), __ATOMIC_RELAXED);
}

/* Keeps the place. */
static int go_behind(int portal, off_t place) {
    int free = -1;
    __retarget_lock_acquire(&lock);
    for (int i = 0; i < PLACES; i++)
        if (behind[i].portal == portal || (behind[i].portal == 0 && free < 0))
            free = i;
    if (free >= 0) {
        behind[free].portal = portal;
        behind[free].place = place;
        set_flag(portal, BEHIND, 1);
    }
    __retarget_lock_release(&lock);
    return free >= 0 ? 0 : fail(EINVAL);
}

/* The place, which is kept no longer. */
static off_t take_place(int portal) {
    off_t place = 0;
    __retarget_lock_acquire(&lock);
    for (int i = 0; i < PLACES; i++)
        if (behind[i].portal == portal) {
            place = behind[i].place;
            behind[i].portal = 0;
        }
    set_flag(portal, BEHIND, 0);
    __retarget_lock_release(&lock);
    return place;
}

off_t __seek_on(int portal, off_t offset, int whence) {
    return __checked(REPEATED(portal_call(portal + FILE_SEEK, offset, whence)));
}

int __lengthen(int portal, off_t length) {
    static const char zeroes[512];
    off_t end = __seek_on(portal, 0, SEEK_END);
    while (end >= 0 && end < length) {
        size_t part = length - end < (off_t)sizeof zeroes ? (size_t)(length - end) : sizeof zeroes;
        ssize_t written = __write_on(portal, zeroes, part);
        if (written <= 0)
            return written == 0 ? fail(ENOSPC) : -1;
        end += written;
    }
    return end < 0 ? -1 : 0;
}

int __access_of(int fd) {
    int portal = portal_of(fd);
    if (portal < 0)
        return -1;
    int flags = files[portal];
    int access = !(flags & WRITES) ? O_RDONLY : flags & READS ? O_RDWR : O_WRONLY;
    return flags & APPENDS ? access | O_APPEND : access;
}

int open(const char *path, int flags, ...) { return open_path(path, flags); }

int creat(const char *path, mode_t mode) {
    (void)mode;
    return open(path, O_WRONLY | O_CREAT | O_TRUNC);
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
        if (state == CLOSED)
            return fail(EBADF);
    } else if ((portal = portal_of(fd)) < 0) {
        return -1;
    }
    if (files[portal] & BEHIND)
        take_place(portal);
    if (__atomic_exchange_n(&files[portal], 0, __ATOMIC_RELAXED) == 0)
        return fail(EBADF); /* another thread was quicker */
    return give_back(portal) < 0 ? -1 : 0;
}

int __descriptor(int fd, int *use) {
    int portal = portal_of(fd);
    *use = portal < 0 ? 0 : files[portal];
    return portal;
}

/* Where a file stands is its server's to know. Who moves there and back again (vector.c) keeps all other threads off meanwhile. */
#define IN_PLACE(portal, call)                                                                                   \
    __extension__({                                                                                              \
        struct __lock *places_ = files[portal] & STREAM ? NULL : &__places;                                      \
        __retarget_lock_acquire(places_);                                                                        \
        __typeof__(call) result_ = (call);                                                                       \
        __retarget_lock_release(places_);                                                                        \
        result_;                                                                                                 \
    })

static ssize_t read_here(int portal, void *buffer, size_t size) {
    if (files[portal] & BEHIND) {
        off_t place = take_place(portal);
        if (__seek_on(portal, place, SEEK_SET) < 0)
            return go_behind(portal, place);
    }
    return __read_on(portal, buffer, size);
}

ssize_t read(int fd, void *buffer, size_t size) {
    int portal = portal_for(fd, READS);
    return portal < 0 ? -1 : IN_PLACE(portal, read_here(portal, buffer, size));
}

ssize_t __read_on(int portal, void *buffer, size_t size) {
    size_t done = 0, chunk, got;
    do {
        long count = __move_page(portal, SEEK_READ_PAGE, (char *)buffer + done, size - done, 0, &chunk);
        if (chunk == 0) {
            long words[MAX_RESULTS];
            chunk = size - done < IO_BYTES ? size - done : IO_BYTES;
            count = __checked(REPEATED(portal_call_results(words, portal + FILE_READ, chunk)));
            if (count > 0)
                memcpy((char *)buffer + done, words, (size_t)count < chunk ? (size_t)count : chunk);
        }
        if (count < 0)
            return done ? (ssize_t)done : -1;
        got = (size_t)count < chunk ? (size_t)count : chunk;
        done += got;
    } while (got == chunk && done < size && !(files[portal] & STREAM));
    return (ssize_t)done;
}

static ssize_t write_here(int portal, const void *buffer, size_t size) {
    if (files[portal] & BEHIND) {
        off_t place = take_place(portal);
        if (size > 0 && !(files[portal] & APPENDS) && __seek_on(portal, place, SEEK_SET) < 0 && __lengthen(portal, place) < 0) {
            int error = errno;
            go_behind(portal, place);
            return fail(error);
        }
    }
    return __write_on(portal, buffer, size);
}

ssize_t write(int fd, const void *buffer, size_t size) {
    int portal = portal_for(fd, WRITES);
    return portal < 0 ? -1 : IN_PLACE(portal, write_here(portal, buffer, size));
}

ssize_t __write_on(int portal, const void *buffer, size_t size) {
    long append = (files[portal] & (APPENDS | STREAM)) == APPENDS ? (long)WRITE_APPEND : 0;
    size_t done = 0;
    while (done < size) {
        size_t chunk;
        long count = __move_page(portal, SEEK_WRITE_PAGE, (char *)buffer + done, size - done, append, &chunk);
        if (chunk == 0) {
            long w[IO_BYTES / sizeof(long)] = {0};
            chunk = size - done < IO_BYTES ? size - done : IO_BYTES;
            memcpy(w, (const char *)buffer + done, chunk);
            /* What is left, this call's bytes among it: the console keeps together what was written together. */
            long left = (long)(size - done) | append;
            count = __checked(REPEATED(portal_call(portal + FILE_WRITE, left, w[0], w[1], w[2], w[3])));
        }
        if (count < 0)
            return done ? (ssize_t)done : -1;
        if (count == 0)
            break;
        done += (size_t)count < chunk ? (size_t)count : chunk;
    }
    return (ssize_t)done;
}

static off_t seek_here(int portal, off_t offset, int whence) {
    off_t from = 0;
    if (files[portal] & BEHIND) {
        off_t place = take_place(portal);
        if (whence == SEEK_CUR)
            from = place, whence = SEEK_SET;
    }
    off_t place = __builtin_add_overflow(from, offset, &offset) ? fail(EOVERFLOW) : __seek_on(portal, offset, whence);
    if (place >= 0 || errno != EINVAL)
        return place;
    if (whence != SEEK_SET) {
        from = __seek_on(portal, 0, whence);
        if (from < 0 || __builtin_add_overflow(from, offset, &offset))
            return fail(EOVERFLOW);
    }
    return offset < 0 ? fail(EINVAL) : go_behind(portal, offset) < 0 ? -1 : offset;
}

off_t lseek(int fd, off_t offset, int whence) {
    int portal = portal_of(fd);
    if (portal < 0)
        return -1;
    if (files[portal] & STREAM)
        return fail(ESPIPE);
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END)
        return fail(EINVAL);
    return IN_PLACE(portal, seek_here(portal, offset, whence));
}

off_t seek(int fd, off_t offset, int whence) { return lseek(fd, offset, whence); }

/* Files only grow by being written to: so they are, and the place is afterwards where it was. */
static int make_longer(int portal, off_t length) {
    off_t place = seek_here(portal, 0, SEEK_CUR);
    if (place < 0)
        return -1;
    if (files[portal] & BEHIND)
        take_place(portal);
    int result = __lengthen(portal, length), error = errno;
    seek_here(portal, place, SEEK_SET);
    errno = error;
    return result;
}

int ftruncate(int fd, off_t length) {
    struct stat about;
    int portal = portal_for(fd, WRITES);
    if (portal < 0 || fstat(fd, &about) < 0)
        return -1;
    if (!S_ISREG(about.st_mode) || length < 0)
        return fail(EINVAL);
    if (length <= about.st_size)
        return __seek_on(portal, length, SEEK_CUT) < 0 ? -1 : 0;
    return IN_PLACE(portal, make_longer(portal, length));
}

int truncate(const char *path, off_t length) {
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return -1;
    int result = ftruncate(fd, length), error = errno;
    close(fd);
    errno = error;
    return result;
}

int isatty(int fd) {
    char path[PATHLEN + 1];
    int terminal = fd >= 0 && fd <= 2 ? standard[fd].state != CLOSED && starts_with(standard_path(fd, path), CONSOLE)
                                      : portal_of(fd) >= 0 && files[fd] & TERMINAL;
    return terminal ? 1 : (fail(ENOTTY), 0);
}

/* There are no owners and no dates. Every file can be a program. */
static int describe(int portal, struct stat *about) {
    *about = (struct stat){.st_nlink = 1, .st_blksize = PAGE_BYTES};
    if (files[portal] & STREAM) {
        about->st_mode = files[portal] & TERMINAL ? S_IFCHR | 0666 : S_IFIFO | 0600;
        return 0;
    }
    long answer = __checked(REPEATED(portal_call(portal + FILE_SEEK, 0L, (long)SEEK_ABOUT)));
    if (answer < 0)
        return -1;
    about->st_mode = (answer & ABOUT_DIRECTORY ? S_IFDIR : S_IFREG) | (answer & ABOUT_WRITABLE ? 0777 : 0555);
    about->st_size = answer / ABOUT_SIZE;
    about->st_blocks = (about->st_size + 511) / 512;
    return 0;
}

int fstat(int fd, struct stat *about) {
    int portal = portal_of(fd);
    return portal < 0 ? -1 : describe(portal, about);
}

int stat(const char *path, struct stat *about) {
    int first = open_path(path, O_RDONLY);
    if (first < 0)
        return -1;
    int result = describe(first, about), error = errno;
    close(first);
    errno = error;
    return result;
}

int access(const char *path, int mode) {
    struct stat about;
    if (stat(path, &about) < 0)
        return -1;
    return mode & W_OK && !(about.st_mode & S_IWUSR) ? fail(EROFS) : 0;
}

/* Who has the file open finds it empty. */
int unlink(const char *path) {
    static int remove;
    return call_named(&remove, FILE_REMOVE_NAME, path) < 0 ? -1 : 0;
}

/* Two paths are more than a call carries. From the second call on, the file has the new name alone; whose name it was is gone. */
int rename(const char *from, const char *to) {
    static int leave, enter;
    int result = -1;
    __retarget_lock_acquire(&lock);
    errno = EAGAIN; /* as long as a server that was replaced between the two does not know the first */
    for (int tries = 10; tries > 0 && result < 0 && errno == EAGAIN; tries--)
        result = call_named(&leave, FILE_RENAME_NAME, from) < 0 ? -1 : call_named(&enter, FILE_RENAME_TO_NAME, to);
    __retarget_lock_release(&lock);
    return result < 0 ? -1 : 0;
}
