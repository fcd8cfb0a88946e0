/*
 * Reads and writes of many bytes: a page a call, by a window.
 *
 * A window shows a whole page, and beside the bytes that are meant others may lie there: they are nobody's business, and the server could
 * change them. So whole pages of the caller's bytes are lent as they are, and all others go through a page that has nothing else in it, one
 * thread at a time.
 */
#include "internal.h"

#include <malloc.h>
#include <string.h>
#include <sys/lock.h>

enum {
    MUCH = 1024, /* for so many, a portal is made that is not there yet: that costs as much as moving some 2 KB in registers */
};

/* Of each file its first portal, and those for reading and writing pages: 0, or NONE, since the server has none. Files that find no place
   here go on in registers. */
enum { NONE = 1, FILES = 16 };
static struct {
    int first, page[2];
} known[FILES];
static struct __lock lock;

/* The place of a file, or one that is free; under the lock. */
static int place_of(int first) {
    int place = FILES;
    for (int i = 0; i < FILES; i++) {
        if (known[i].first == first)
            return i;
        if (known[i].first == 0 && place == FILES)
            place = i;
    }
    return place;
}

/* The file's portal for pages that whence asks for; 0: there is none. */
static int page_portal(int first, int whence, size_t size) {
    int which = whence - SEEK_READ_PAGE;
    __retarget_lock_acquire(&lock);
    int place = place_of(first), portal = 0;
    if (place < FILES) {
        portal = known[place].first == first ? known[place].page[which] : 0;
        if (portal == 0 && size >= MUCH) {
            struct portal_result made = REPEATED(portal_call(first + FILE_SEEK, 0L, (long)whence));
            portal = made.status == 0 && made.value > 0 ? (int)made.value : NONE;
            if (known[place].first != first)
                known[place].page[!which] = 0;
            known[place].first = first;
            known[place].page[which] = portal;
        }
    }
    __retarget_lock_release(&lock);
    return portal == NONE ? 0 : portal;
}

void __close_pages(int first) {
    __retarget_lock_acquire(&lock);
    int place = place_of(first);
    if (place < FILES && known[place].first == first) {
        for (int which = 0; which < 2; which++)
            if (known[place].page[which] > NONE)
                portal_call(SYS_PORTAL_CLOSE, known[place].page[which], 1);
        known[place].first = 0;
    }
    __retarget_lock_release(&lock);
}

static char *between; /* the heap's, once there was a need for it */
static char taken;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many of the bytes there go through the page between; 0: the page there is the caller's bytes alone. */
static size_t aside(const char *buffer, size_t size) {
    size_t head = -(unsigned long)buffer % PAGE_BYTES;
    if (size < head + PAGE_BYTES)
        return least(size, PAGE_BYTES);
    return head;
}

/* True: the page between is this thread's. */
static int take_between(void) {
    if (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
        return 0;
    if (between == NULL && (between = memalign(PAGE_BYTES, PAGE_BYTES)) == NULL)
        __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return between != NULL;
}

/* One call. False: this memory may not be lent. */
static int lend(long *count, int portal, const void *page, long size) {
    struct portal_result result = REPEATED(portal_call(portal, (long)page, size));
    if (portal_status_code(result.status) == PORTAL_WINDOW)
        return 0;
    *count = __checked(result);
    return 1;
}

long __read_page(int portal, char *buffer, size_t size, size_t *chunk) {
    long count = -1;
    *chunk = 0;
    int page = size <= IO_BYTES ? 0 : page_portal(portal, SEEK_READ_PAGE, size);
    if (page == 0)
        return -1;
    size_t some = aside(buffer, size);
    if (some == 0) {
        if (lend(&count, page, buffer, PAGE_BYTES)) {
            *chunk = PAGE_BYTES;
            return count;
        }
        some = PAGE_BYTES;
    }
    if (!take_between())
        return -1;
    if (lend(&count, page, between, (long)some)) {
        *chunk = some;
        if (count > 0)
            memcpy(buffer, between, least((size_t)count, some));
    }
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return count;
}

long __write_page(int portal, const char *buffer, size_t size, long flags, size_t *chunk) {
    long count = -1;
    *chunk = 0;
    int page = size <= IO_BYTES ? 0 : page_portal(portal, SEEK_WRITE_PAGE, size);
    if (page == 0)
        return -1;
    size_t some = aside(buffer, size);
    if (some == 0) {
        if (lend(&count, page, buffer, (long)size | flags)) {
            *chunk = PAGE_BYTES;
            return count;
        }
        some = PAGE_BYTES;
    }
    if (!take_between())
        return -1;
    memcpy(between, buffer, some);
    /* What is left, where the server stops at the end of the page anyway. */
    long left = some == least(size, PAGE_BYTES) ? (long)size : (long)some;
    if (lend(&count, page, between, left | flags))
        *chunk = some;
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return count;
}
