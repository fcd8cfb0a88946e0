// Calls and switches: the null call, yields, and tokens that go round rings of processes.
//
// A helper repeats its part for ever and is killed afterwards, so nobody counts rounds together.
#include "row.h"

#define MOST 8

static const char *const YIELDS[] = {"yield.1", "yield.2", "yield.4", "yield.8"};
static const char *const SEMAPHORES[] = {"", "sem.ring.2", "sem.ring.4", "sem.ring.8"};
static const char *const PIPES[] = {"", "pipe.latency.2", "pipe.latency.4", "pipe.latency.8"};

void measure_calls(void) {
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        getppid();
        add(counter() - before);
    }
    finish("portal.short_circuit", 1);
}

// A semaphore in shared memory, as POSIX semaphores are made: the kernel is entered only to wait and to wake.
struct semaphore {
    int value, waiters, pad[14];
};
static struct semaphore *ring;

enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

static inline void p(struct semaphore *s) {
    for (;;) {
        int value = __atomic_load_n(&s->value, __ATOMIC_RELAXED);
        while (value > 0)
            if (__atomic_compare_exchange_n(&s->value, &value, value - 1, 1, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return;
        __atomic_fetch_add(&s->waiters, 1, __ATOMIC_SEQ_CST);
        sys6(SYS_futex, (i64)&s->value, FUTEX_WAIT, 0, 0, 0, 0);
        __atomic_fetch_sub(&s->waiters, 1, __ATOMIC_RELAXED);
    }
}

static inline void v(struct semaphore *s) {
    __atomic_fetch_add(&s->value, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&s->waiters, __ATOMIC_SEQ_CST)) sys3(SYS_futex, (i64)&s->value, FUTEX_WAKE, 1);
}

// Pipe n leads to member n of a ring: what it reads, what is written to it.
static int ends[MOST][2];
static u64 members;

static void yielding(u64 unused) {
    (void)unused;
    for (;;) sched_yield();
}

static void passing(u64 member) {
    for (;;) {
        p(&ring[member]);
        v(&ring[(member + 1) % members]);
    }
}

static void piping(u64 member) {
    char byte;
    for (;;) {
        read(ends[member][0], &byte, 1);
        write(ends[(member + 1) % members][1], &byte, 1);
    }
}

// A ring of processes, of which this one is member 0.
static void round_trips(void (*work)(u64), void (*once)(void), const char *id) {
    i64 helpers[MOST];
    for (u64 i = 1; i < members; i++) helpers[i] = helper(work, i, PRIORITY);
    // Each gets to where it waits.
    for (int i = 0; i < 4; i++) sched_yield();
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        once();
        add(counter() - before);
    }
    finish(id, members);
    for (u64 i = 1; i < members; i++) end_helper(helpers[i]);
}

static void one_yield(void) { sched_yield(); }

static void one_token(void) {
    v(&ring[1]);
    p(&ring[0]);
}

static void one_byte(void) {
    char byte = 0;
    write(ends[1][1], &byte, 1);
    read(ends[0][0], &byte, 1);
}

// What parties pay that trust each other with the memory of a semaphore, where nobody waits.
static void free_semaphore(void) {
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        v(&ring[0]);
        p(&ring[0]);
        add(counter() - before);
    }
    finish("futex.free", 2);
}

// Half of a call and its answer between two processes: a message there, a message back.
static struct {
    int there_read, there_write, back_read, back_write;
    u64 bytes;
} link;

static void serving(u64 unused) {
    u64 words[4];
    (void)unused;
    for (;;) {
        read(link.there_read, words, link.bytes);
        write(link.back_write, words, link.bytes);
    }
}

static void one_call(void) {
    u64 words[4] = {1, 2, 3, 4};
    write(link.there_write, words, link.bytes);
    read(link.back_read, words, link.bytes);
}

static void calls(void) {
    members = 2;
    int there[2], back[2];
    must(sys3(SYS_pipe2, (i64)there, 0, 0), "pipe2");
    must(sys3(SYS_pipe2, (i64)back, 0, 0), "pipe2");
    link.there_read = there[0], link.there_write = there[1];
    link.back_read = back[0], link.back_write = back[1];
    link.bytes = sizeof(u64[4]);
    round_trips(serving, one_call, "portal.leg.np.4");
    for (int i = 0; i < 2; i++) close(there[i]), close(back[i]);
    link.there_read = link.there_write = (int)must(sys3(SYS_eventfd2, 0, 0, 0), "eventfd2");
    link.back_read = link.back_write = (int)must(sys3(SYS_eventfd2, 0, 0, 0), "eventfd2");
    link.bytes = sizeof(u64);
    round_trips(serving, one_call, "portal.leg.sm.0");
    close(link.there_read), close(link.back_read);
}

void measure_rings(void) {
    ring = map(PAGE, 1);
    free_semaphore();
    calls();
    for (int i = 0; i < 4; i++) {
        members = 1ul << i;
        round_trips(yielding, one_yield, YIELDS[i]);
    }
    for (int i = 1; i < 4; i++) {
        members = 1ul << i;
        memset(ring, 0, PAGE);
        round_trips(passing, one_token, SEMAPHORES[i]);
    }
    for (int i = 1; i < 4; i++) {
        members = 1ul << i;
        for (u64 n = 0; n < members; n++) must(sys3(SYS_pipe2, (i64)ends[n], 0, 0), "pipe2");
        round_trips(piping, one_byte, PIPES[i]);
        for (u64 n = 0; n < members; n++) close(ends[n][0]), close(ends[n][1]);
    }
}
