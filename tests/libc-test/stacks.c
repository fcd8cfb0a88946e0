/* Stacks grow when they are touched: how far, into what, and what is done on them far down. */
#include "check.h"
#include <unistd.h>

#define PAGE 4096
/* Calls that take a page each: the first thread's stack has almost 1 MiB, another's 60 KiB. */
enum { FAR = 240, NEAR = 12 };
static const char place[] = "/ram/deep";

/* What has been left behind is still there on the way back. */
__attribute__((noinline)) static long deep(int calls, void (*bottom)(void)) {
    volatile char frame[PAGE - 256];
    frame[0] = (char)calls;
    frame[sizeof frame - 1] = (char)-calls;
    /* Or the compiler would make a loop of this. */
    __asm__ volatile("" : : "r"(frame) : "memory");
    if (calls == 0 && bottom != NULL)
        bottom();
    long below = calls > 0 ? deep(calls - 1, bottom) : 0;
    return below + (frame[0] == (char)calls && frame[sizeof frame - 1] == (char)-calls);
}

/* A window over a page that nobody has touched: of a file that begins so. */
__attribute__((noinline)) static void lend_page(void) {
    char room[5 * PAGE], *page = room + -(unsigned long)room % PAGE;
    long name[5] = {0};
    memcpy(name, place, sizeof place);
    long first = invoke_portal(SYS_FILE_OPEN, name[0], name[1], name[2], name[3], name[4]);
    long portal = invoke_portal((int)first + FILE_SEEK, 0L, (long)SEEK_READ_PAGE);
    CHECK(first > 0 && portal > 0);
    CHECK(invoke_portal((int)portal, page, (long)PAGE) == PAGE && memcmp(page, "begin", 5) == 0);
    CHECK(invoke_portal(SYS_PORTAL_CLOSE, portal, 1L) == 0 && invoke_portal((int)first + FILE_CLOSE) == 0);
    CHECK(invoke_portal(SYS_PORTAL_CLOSE, first, (long)FILE_PORTALS) == 0);
}

/* Files are read into pages that nobody has touched, and so are the pages that a write begins with. */
static void move_bytes(void) {
    char bytes[16 * PAGE];
    int file = open(place, O_RDWR | O_CREAT | O_TRUNC);
    CHECK(file >= 0 && write(file, bytes, sizeof bytes) == sizeof bytes);
    CHECK(lseek(file, 0, SEEK_SET) == 0 && write(file, "begin", 5) == 5 && lseek(file, 0, SEEK_SET) == 0);
    char again[16 * PAGE];
    CHECK(read(file, again, sizeof again) == sizeof again && memcmp(again, "begin", 5) == 0);
    CHECK(memcmp(again + 5, bytes + 5, sizeof bytes - 5) == 0);
    lend_page();
    CHECK(close(file) == 0 && unlink(place) == 0);
}

/* The new thread's stack is no place for so much. */
static void copy_thread(void) { FAILS(fork(), ENOMEM); }

static long pass_on(long index, long a, long b, long c, long d, long e) { return invoke_portal((int)index, a, b, c, d, e); }

static int waits;

/* A copy of the domain has all of the stack, and goes on from there. */
static void copy_domain(void) {
    int child = domain_fork(pass_on);
    if (child == 0)
        _exit(deep(20, NULL) == 21 ? 7 : 8);
    CHECK(child > 0 && invoke_portal_within(10L * TIME_HZ, waits, child) == 7);
}

static int done;
static long returned;

static void another(void *unused) {
    (void)unused;
    returned = deep(NEAR, NULL);
    sem_post(done);
}

void test_stacks(void) {
    waits = portal_open("process.wait");
    /* Before anything has been that deep. */
    CHECK(deep(FAR / 2, move_bytes) == FAR / 2 + 1);
    CHECK(deep(FAR, NULL) == FAR + 1);
    CHECK(deep(40, copy_thread) == 41);
    CHECK(deep(40, copy_domain) == 41);
    /* There is room beside it for others. */
    done = sem_create(0);
    for (int n = 0; n < 3; n++) {
        CHECK(thread_create(another, NULL) >= 0);
        sem_wait(done);
        CHECK(returned == NEAR + 1);
    }
    CHECK(deep(FAR / 2, NULL) == FAR / 2 + 1);
}
