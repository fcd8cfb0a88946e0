/*
 * Waiting for a word to change: what pthread.h and semaphore.h are made of.
 *
 * An object there is a few words, which its threads change by atomic instructions. Who must wait says for which word, and what it holds
 * now; who changes it wakes so many of those that wait for it. All that waiting takes is here, and belongs to the threads that wait: an object
 * has nothing that must be given back, and nothing of it is touched once the change by which another thread may free it has been made.
 *
 * A thread waits on a semaphore out of a pool. Invariants: one in the pool has the value 0; who has been taken from the list is
 * given exactly one V, and takes it before it gives the semaphore back, however late it was. A program that has used up its portals or
 * time limits still waits: it looks every millisecond.
 */
#include "waiting.h"

#include "internal.h"

#include <sys/lock.h>

struct waiter {
    struct waiter *next;
    const int *word;
    int sem; /* -1: it looks for itself */
    int woken;
};

enum { POOLED = 32 /* a domain has no more stacks, so no more threads wait in it */ };
static struct __lock lock;
static struct waiter *first;
static int pool[POOLED], pooled;
/* Which copy of the domain all this is about: the threads of another are not here, and its semaphores are not this one's. */
static long copy;

/* Under the lock. */
static void know_copy(void) {
    if (copy == __copies)
        return;
    copy = __copies;
    first = NULL;
    pooled = 0;
}

static int take_semaphore(void) { return pooled > 0 ? pool[--pooled] : (int)portal_call(SYS_SEM_CREATE, 0L, 0L).value; }

static void give_back(int sem) {
    if (sem < 0)
        return;
    if (pooled < POOLED)
        pool[pooled++] = sem;
    else
        portal_call(SYS_PORTAL_CLOSE, (long)sem, 2L);
}

static void enter(struct waiter *me) {
    struct waiter **last = &first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = me;
}

static void leave(struct waiter *me) {
    for (struct waiter **at = &first; *at != NULL; at = &(*at)->next)
        if (*at == me) {
            *at = me->next;
            return;
        }
}

static long sooner(long a, long b) { return a < b ? a : b; }

/* Until woken, or late: whether the V has been taken. */
static int sleep_until(struct waiter *me, long until) {
    if (me->sem >= 0 && until == FOREVER)
        return portal_call(me->sem).value == 0;
    if (me->sem >= 0) {
        long rest = until - hrtime();
        if (rest <= 0)
            return 0;
        if (__invoke_portal_within((unsigned long)rest, me->sem, 0, 0, 0, 0, 0) == 0)
            return 1;
        if (portal_status_code(portal_status()) == PORTAL_TIMEOUT)
            return 0;
    }
    while (!__atomic_load_n(&me->woken, __ATOMIC_ACQUIRE) && hrtime() < until)
        if (hrsleep(sooner(until, hrtime() + TIME_HZ / 1000)) < 0)
            break;
    return 0;
}

int __wait_while(const int *word, int value, long until) {
    struct waiter me = {.word = word};
    __retarget_lock_acquire(&lock);
    know_copy();
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
        __retarget_lock_release(&lock);
        return 0;
    }
    me.sem = take_semaphore();
    enter(&me);
    __retarget_lock_release(&lock);

    int taken = sleep_until(&me, until);

    __retarget_lock_acquire(&lock);
    int woken = me.woken;
    if (!woken)
        leave(&me);
    __retarget_lock_release(&lock);
    /* It is on its way. */
    while (woken && me.sem >= 0 && !taken)
        taken = portal_call(me.sem).value == 0;

    __retarget_lock_acquire(&lock);
    give_back(me.sem);
    __retarget_lock_release(&lock);
    return woken || hrtime() < until ? 0 : ETIMEDOUT;
}

void __wake(const int *word, int most) {
    int sems[POOLED], count = 0;
    __retarget_lock_acquire(&lock);
    know_copy();
    for (struct waiter **at = &first; *at != NULL && most > 0;) {
        struct waiter *waiter = *at;
        if (waiter->word != word) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        if (waiter->sem >= 0 && count < POOLED)
            sems[count++] = waiter->sem;
        __atomic_store_n(&waiter->woken, 1, __ATOMIC_RELEASE);
        most--;
    }
    __retarget_lock_release(&lock);
    for (int i = 0; i < count; i++)
        portal_call(sems[i] + 1);
}

/* Rounded up: nothing ends before its time. */
long __deadline(const struct timespec *time, clockid_t clock) {
    struct timespec now;
    if (time->tv_nsec < 0 || time->tv_nsec >= 1000000000L || clock_gettime(clock, &now) < 0)
        return -1;
    long seconds = time->tv_sec - now.tv_sec, tick = 1000000000L / TIME_HZ;
    if (seconds > (FOREVER - hrtime()) / (long)TIME_HZ - 2)
        return FOREVER - 1;
    if (seconds < -1)
        return 0;
    long ticks = seconds * (long)TIME_HZ + (time->tv_nsec - now.tv_nsec + tick - 1) / tick, start = hrtime();
    return ticks <= -start ? 0 : start + ticks;
}

int __is_late(const struct timespec *time, clockid_t clock) { return __deadline(time, clock) <= hrtime(); }
