/*
 * Reads and writes of many bytes: a page a call, by a window.
 *
 * A window shows a whole page, and beside the bytes that are meant others may lie there: they are nobody's business, and the server could
 * change them. So whole pages of the caller's bytes are lent as they are, and all others go through a page that has nothing else in it, one
 * thread at a time.
 *
 * Making a portal for pages costs as much as moving WORTH bytes in registers. So it is made when a file has moved about as many, and no
 * file costs more than twice what it must.
 */
#include "internal.h"

#include <malloc.h>
#include <string.h>
#include <sys/lock.h>

enum { WORTH = 512 /* it takes 7,000 instructions, and a byte in registers 14 */ };

/* Of each file its first portal, those for reading and writing pages, and the bytes that have gone in registers. A portal is 0, or NONE,
   since the server has none. Files that find no place here go on in registers. */
enum { NONE = 1, FILES = 16 };
static struct {
    int first, page[2];
    size_t moved;
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

/* The file's portal for pages that whence asks for; 0: the next few bytes go in registers. */
static int page_portal(int first, int whence, size_t size) {
    int which = whence - SEEK_READ_PAGE, portal = 0;
    /* What is to be written is there; what is to be read may be less than the buffer. */
    size_t sure = whence == SEEK_WRITE_PAGE ? size : IO_BYTES;
    __retarget_lock_acquire(&lock);
    int place = place_of(first);
    if (place < FILES) {
        known[place].first = first;
        portal = known[place].page[which];
        if (portal == 0 && known[place].moved + sure >= WORTH) {
            struct portal_result made = REPEATED(portal_call(first + FILE_SEEK, 0L, (long)whence));
            portal = made.status == 0 && made.value > 0 ? (int)made.value : NONE;
            known[place].page[which] = portal;
        }
        known[place].moved += IO_BYTES;
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
        memset(&known[place], 0, sizeof known[place]);
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
    if (between != NULL || (between = memalign(PAGE_BYTES, PAGE_BYTES)) != NULL)
        return 1;
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return 0;
}

/* One call. False: this memory may not be lent. */
static int lend(long *count, int portal, const void *page, long size) {
    (void)*(const volatile char *)page; /* a page of a stack comes when it is touched */
    struct portal_result result = REPEATED(portal_call(portal, (long)page, size));
    if (portal_status_code(result.status) == PORTAL_WINDOW)
        return 0;
    *count = __checked(result);
    return 1;
}

long __move_page(int first, int whence, char *buffer, size_t size, long flags, size_t *chunk) {
    long count = -1;
    *chunk = 0;
    int portal = size <= IO_BYTES ? 0 : page_portal(first, whence, size);
    if (portal == 0)
        return -1;
    size_t some = aside(buffer, size);
    if (some == 0) {
        if (lend(&count, portal, buffer, (long)size | flags)) {
            *chunk = PAGE_BYTES;
            return count;
        }
        some = PAGE_BYTES;
    }
    if (!take_between())
        return -1;
    if (whence == SEEK_WRITE_PAGE)
        memcpy(between, buffer, some);
    /* What is left, where the server stops at the end of the page anyway. */
    long left = some == least(size, PAGE_BYTES) ? (long)size : (long)some;
    if (lend(&count, portal, between, left | flags)) {
        *chunk = some;
        if (whence == SEEK_READ_PAGE && count > 0)
            memcpy(buffer, between, least((size_t)count, some));
    }
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return count;
}
