/* Faults and calls where a thread's invocation stack has little room left.

   abyss fall DEPTH ACT NAME     calls itself through portals until the invocation stack has DEPTH words more, or one less, and there does ACT.
                                 Status 0: it has come back
   abyss handle NAME [NEXT]      answers for others' page faults, as NAME: by touching a page of its own for which NEXT answers, or nobody
   abyss policy NAME NEXT        says who may open the interface NAME.kept: by touching such a page */
#include <fcntl.h>
#include <pebble.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE ((volatile long *)0x05000000)
#define PAGES 16

/* Words of the frames of two calls: of everything that a portal keeps, and of next to nothing. */
#define LARGE 29
#define SMALL 2

static int large, small, aside;
static const char *act, *const *names;

static int answered_by(const char *name) {
    int portal = portal_open(name);
    return portal < 0 ? -1 : fault_range((void *)RANGE, PAGES, portal);
}

static long touch(void) {
    return *RANGE;
}

/* Each server that programs call, and what it calls in turn. */
static long call_servers(void) {
    int fd = open("/share/lines", O_RDONLY);
    char bytes[8];
    long failed = read(fd, bytes, sizeof bytes) != sizeof bytes;
    close(fd);
    int pipe = open("/dev/pipe/abyss", O_RDWR), sem = sem_create(1), clock = portal_open("clock.nanoseconds");
    failed += sem_wait(sem) != 0;
    sem_close(sem);
    failed += invoke_portal_within(TIME_HZ, clock) <= 0;
    portal_close(clock);
    close(pipe);
    failed += portal_open("abyss.none") >= 0;
    failed += invoke_portal(SYS_SBRK, 4096L) == -1;
    failed += invoke_portal(SYS_PROCESS, 0L, 0L) >= 0;
    return failed;
}

static long act_now(void) {
    if (strcmp(act, "touch") == 0)
        return touch();
    if (strcmp(act, "open") == 0)
        return portal_open(names[0]) >= 0;
    return call_servers();
}

static long bottom(long unused) {
    (void)unused;
    return act_now();
}

static long fall(long depth) {
    if (depth >= LARGE)
        return invoke_portal(large, depth - LARGE);
    if (depth >= SMALL)
        return invoke_portal(small, depth - SMALL);
    return aside ? invoke_portal(aside, 0L) : act_now();
}

static long handle(long asid, long address, long cause) {
    (void)asid, (void)address, (void)cause;
    return touch();
}

static long decide(long asid, long interface) {
    (void)asid, (void)interface;
    return touch();
}

static int own(const char *what, const char *spec, void *function) {
    char name[NAMELEN];
    snprintf(name, sizeof name, "abyss%d.%s", get_asid(), what);
    return portal_register(name, spec, function) < 0 ? -1 : portal_open(name);
}

static void serve(void) {
    hrsleep(hrtime() + 3600L * TIME_HZ);
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "handle") == 0) {
        if ((argc > 3 && answered_by(argv[3]) < 0) || portal_register(argv[2], "npiii", handle) < 0)
            return 98;
        serve();
    }
    if (argc == 4 && strcmp(argv[1], "policy") == 0) {
        char name[NAMELEN];
        snprintf(name, sizeof name, "%s.kept", argv[2]);
        if (answered_by(argv[3]) < 0 || portal_register(argv[2], "npii", decide) < 0)
            return 98;
        int kept = portal_register(name, "np", touch), policy = portal_open(argv[2]);
        if (kept < 0 || policy < 0 || portal_guard(kept, GUARD_ASK, policy) < 0)
            return 97;
        snprintf(name, sizeof name, "%s.up", argv[2]);
        portal_register(name, "np", touch);
        serve();
    }
    if (argc < 5 || strcmp(argv[1], "fall") != 0)
        return 2;
    int depth = atoi(argv[2]);
    act = argv[3];
    names = (const char *const *)argv + 4;
    large = own("large", "spi", fall);
    small = own("small", "smi", fall);
    /* On another stack. */
    aside = depth % 2 ? own("aside", "npi", bottom) : 0;
    if (large < 0 || small < 0 || aside < 0 || (strcmp(act, "touch") == 0 && answered_by(names[0]) < 0))
        return 98;
    return (int)fall(depth) != 0;
}
