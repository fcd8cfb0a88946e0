// Wake-up by a timer: how late a thread runs that sleeps until an absolute time, while others load the
// machine at a lower priority.
//
// The clock counts nanoseconds, of which the emulator takes one for each instruction, in steps of a hundred.
// So the count at which the clock shows a time is that time and an offset, which is found once: the least
// seen, as in Pebble's own bench. The kernel's user page reads the clock without a system call.
#include "row.h"

enum { CLOCK_MONOTONIC = 1, TIMER_ABSTIME = 1 };

typedef int clock_reader(int clock, struct timespec *now);

struct header {
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    u64 entry, programs, sections;
    uint32_t flags;
    uint16_t header_size, program_size, program_count, section_size, section_count, names;
};

struct section {
    uint32_t name, type;
    u64 flags, address, offset, size;
    uint32_t link, info;
    u64 alignment, entry_size;
};

struct symbol {
    uint32_t name;
    unsigned char info, other;
    uint16_t section;
    u64 value, size;
};

static int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static clock_reader *find_reader(const void *vdso) {
    enum { DYNAMIC_SYMBOLS = 11 };
    const char *image = vdso;
    const struct header *header = vdso;
    if (!vdso) return 0;
    const struct section *sections = (const void *)(image + header->sections);
    for (int i = 0; i < header->section_count; i++) {
        if (sections[i].type != DYNAMIC_SYMBOLS) continue;
        const struct symbol *symbols = (const void *)(image + sections[i].offset);
        const char *names = image + sections[sections[i].link].offset;
        for (u64 n = 0; n < sections[i].size / sizeof *symbols; n++)
            if (same(names + symbols[n].name, "__vdso_clock_gettime"))
                return (clock_reader *)(image + symbols[n].value);
    }
    return 0;
}

static clock_reader *reader;

static u64 now(void) {
    struct timespec time;
    reader(CLOCK_MONOTONIC, &time);
    return (u64)time.seconds * 1000000000 + (u64)time.nanoseconds;
}

// The count at time 0: the least seen, since the count is read after the clock has moved.
static u64 calibrate(void) {
    u64 least = ~0ul;
    for (int i = 0; i < 2000; i++) {
        u64 first = now(), time;
        do time = now();
        while (time == first);
        u64 offset = counter() - time;
        if (least == ~0ul || (i64)(offset - least) < 0) least = offset;
    }
    return least;
}

static void spinning(u64 unused) {
    (void)unused;
    for (;;) __asm__ volatile("" ::: "memory");
}

static void calling(u64 unused) {
    (void)unused;
    for (;;) getppid();
}

static void yielding(u64 unused) {
    (void)unused;
    for (;;) sched_yield();
}

static int *token;

// One of two that pass a token: each waits until the word is its own number.
static void passing(u64 own) {
    enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };
    for (;;) {
        int seen;
        while ((seen = __atomic_load_n(token, __ATOMIC_ACQUIRE)) != (int)own)
            sys6(SYS_futex, (i64)token, FUTEX_WAIT, seen, 0, 0, 0);
        __atomic_store_n(token, (int)!own, __ATOMIC_RELEASE);
        sys3(SYS_futex, (i64)token, FUTEX_WAKE, 1);
    }
}

static void latency(void (*load)(u64), u64 helpers, u64 offset, const char *id) {
    i64 pids[2];
    for (u64 i = 0; i < helpers; i++) pids[i] = helper(load, i, PRIORITY - 10);
    u64 random = 0x2545f4914f6cdd1d;
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        // Long enough for the thread to be asleep by then.
        u64 due = now() + 30000 + random % 40000;
        struct timespec until = {(i64)(due / 1000000000), (i64)(due % 1000000000)};
        sys6(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (i64)&until, 0, 0, 0);
        add(counter() - (due + offset));
    }
    finish(id, 1);
    for (u64 i = 0; i < helpers; i++) end_helper(pids[i]);
}

void measure_timers(const void *vdso) {
    reader = find_reader(vdso);
    if (!reader) must(-1, "the kernel's user page has no clock");
    token = map(PAGE, 1);
    u64 offset = calibrate();
    latency(spinning, 1, offset, "irq.idle");
    latency(calling, 1, offset, "irq.sc");
    latency(yielding, 1, offset, "irq.yield");
    latency(passing, 2, offset, "irq.sem");
}
