/*
 * Files and memory as pages.
 *
 * The file server has a file of the archive shown to this domain, all of it from the first page on that is wanted, where that server sees it
 * too: so several mappings of a file are the same pages, and who ends one must leave what the others want. Everything else is a copy, in the
 * heap. Each mapping is known here, by a record.
 */
#include "descriptor.h"

#include <malloc.h>
#include <pebble-interfaces.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct mapping {
    struct mapping *next;
    char *start;
    size_t size;  /* of whole pages */
    size_t shown; /* of these, the archive's: all but what is behind the file's end; 0: a copy */
};

static struct __lock lock;
static struct mapping *first;

static void *fail(int error) {
    errno = error;
    return MAP_FAILED;
}

static size_t whole(size_t size) { return (size + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1); }

/* Under the lock. */
static void *enter(struct mapping *mapping, char *start, size_t size, size_t shown) {
    *mapping = (struct mapping){.next = first, .start = start, .size = size, .shown = shown};
    first = mapping;
    return start;
}

/* The bytes of the file from there on, and zeros behind its end. fd -1: zeros. */
static int fill(int fd, char *start, size_t size, off_t offset) {
    size_t done = 0;
    ssize_t got = 1;
    while (fd >= 0 && done < size && (got = pread(fd, start + done, size - done, offset + (off_t)done)) > 0)
        done += (size_t)got;
    memset(start + done, 0, size - done);
    return got < 0 ? -1 : 0;
}

static void *copy(int fd, size_t size, off_t offset) {
    struct mapping *mapping = malloc(sizeof *mapping);
    char *start = mapping == NULL ? NULL : memalign(PAGE_BYTES, size);
    if (start == NULL || fill(fd, start, size, offset) < 0) {
        free(start);
        free(mapping);
        return MAP_FAILED;
    }
    __retarget_lock_acquire(&lock);
    enter(mapping, start, size, 0);
    __retarget_lock_release(&lock);
    return start;
}

/* NULL: it cannot be. Nobody hides pages between the moment when they are shown and that when this mapping is known. */
static void *show(int portal, size_t size, off_t offset) {
    struct mapping *mapping = malloc(sizeof *mapping);
    void *start = NULL;
    if (mapping == NULL)
        return NULL;
    __retarget_lock_acquire(&lock);
    struct portal_result result = REPEATED(portal_call(portal + FILE_SEEK, (long)offset, (long)SEEK_SHOW));
    if (result.status == 0 && result.value > 0) {
        size_t there = whole((size_t)(result.value / SHOWN_SIZE));
        start = enter(mapping, (char *)(result.value % SHOWN_SIZE), size, there < size ? there : size);
    }
    __retarget_lock_release(&lock);
    if (start == NULL)
        free(mapping);
    return start;
}

static void *map_file(size_t size, int protection, int flags, int fd, off_t offset) {
    int use, portal = __descriptor(fd, &use);
    if (portal < 0)
        return MAP_FAILED;
    if (use & STREAM)
        return fail(ENODEV);
    if (!(use & READS))
        return fail(EACCES);
    void *start = protection & PROT_WRITE ? NULL : show(portal, size, offset);
    if (start != NULL)
        return start;
    return flags & MAP_PRIVATE ? copy(fd, size, offset) : fail(ENODEV);
}

void *mmap(void *hint, size_t size, int protection, int flags, int fd, off_t offset) {
    (void)hint;
    int sharing = flags & (MAP_SHARED | MAP_PRIVATE), other = flags & ~(MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    if (size == 0 || offset < 0 || offset % PAGE_BYTES || sharing == 0 || sharing == (MAP_SHARED | MAP_PRIVATE) || other)
        return fail(EINVAL);
    if (size > PTRDIFF_MAX - PAGE_BYTES)
        return fail(ENOMEM);
    if (protection & PROT_EXEC)
        return fail(EACCES);
    int anonymous = flags & MAP_ANONYMOUS;
    if (flags & MAP_FIXED || (anonymous && sharing == MAP_SHARED))
        return fail(ENOTSUP);
    return anonymous ? copy(-1, whole(size), 0) : map_file(whole(size), protection, flags, fd, offset);
}

/* Under the lock: whether another mapping wants this page. */
static int wanted(const char *page) {
    for (const struct mapping *at = first; at != NULL; at = at->next)
        if (page >= at->start && page < at->start + at->shown)
            return 1;
    return 0;
}

static void hide(const struct mapping *gone) {
    static int portal;
    if (!__opened(&portal, VM_HIDE_NAME))
        return;
    for (size_t at = 0; at < gone->shown;) {
        size_t end = at;
        while (end < gone->shown && !wanted(gone->start + end))
            end += PAGE_BYTES;
        if (end > at)
            vm_hide(portal, gone->start + at, (end - at) / PAGE_BYTES);
        at = end + PAGE_BYTES;
    }
}

int munmap(void *start, size_t size) {
    __retarget_lock_acquire(&lock);
    struct mapping **at = &first;
    while (*at != NULL && ((*at)->start != start || (*at)->size != whole(size)))
        at = &(*at)->next;
    struct mapping *gone = *at;
    if (gone != NULL)
        *at = gone->next;
    if (gone != NULL && gone->shown)
        hide(gone);
    __retarget_lock_release(&lock);
    if (gone == NULL)
        return errno = EINVAL, -1;
    if (!gone->shown)
        free(gone->start);
    free(gone);
    return 0;
}
