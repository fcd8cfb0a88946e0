/*
 * The locks that the C library takes around malloc, exit handlers and every stream. A lock costs one atomic instruction until two threads
 * meet at it; only then does it get a semaphore. A program that has used up its portals gets none: then who waits looks again every
 * millisecond. Every lock is recursive. The preserved errno matters here: taking a lock must not change it.
 *
 * A holder may never come back: its caller's time was over and the thread was taken out of this domain, or this domain is a copy of
 * one in which another thread had the lock. So the word that says who holds a lock has the thread-local block, which of the activations on that
 * stack it was, and which copy of the domain: whoever finds that the holder is its own stack's past, or another copy's, takes the lock over.
 * For the same reason no wake-up is handed from one thread to another: a lock is free or taken, and when it is given back all are woken that were
 * waiting by then, and look again.
 */
#include "internal.h"

#include <sys/lock.h>

#define TURN_SHIFT 40 /* of an owner: addresses are below */
#define BLOCK (((1L << TURN_SHIFT) - 1) & ~COPY)
#define COPY 15L /* a block's address is a multiple of 16 */

struct __lock __lock___libc_recursive_mutex;

/* How many times this domain has been copied on its way here. */
long __copies;

void __locks_copied(void) { __copies = (__copies + 1) & COPY; }

static long self(void) {
    char *block = PEBBLE_BLOCK();
    return *(long *)(block + CONTROL_TURN) << TURN_SHIFT | (long)block | __copies;
}

/* Whether the holder, another than this thread, will not be back. */
static int gone(long owner, long self) {
    return ((owner ^ self) & COPY) != 0 || ((owner ^ self) & BLOCK) == 0;
}

/* The semaphore, of this copy of the domain; 0 if there is none and none can be had now. */
static int semaphore(struct __lock *lock) {
    long sem = __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
    if (sem != 0 && (sem & COPY) == __copies)
        return (int)(sem >> 4);
    long made = portal_call(SYS_SEM_CREATE, 0).value;
    if (made < 0)
        return 0;
    if (__atomic_compare_exchange_n(&lock->sem, &sem, made << 4 | __copies, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return (int)made;
    portal_call(SYS_PORTAL_CLOSE, made, 2);
    return (int)(sem >> 4);
}

static int take(struct __lock *lock, long self) {
    long owner = 0;
    while (!__atomic_compare_exchange_n(&lock->owner, &owner, self, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        if (owner != 0 && !gone(owner, self))
            return 0;
    lock->depth = 1;
    return 1;
}

/* What follows is apart from the usual way, which then needs no stack. */
#define APART __attribute__((noinline, cold)) static

/* Counted as a waiter before the lock is looked at: who gives it back afterwards wakes this one. */
APART void wait_for(struct __lock *lock, long self) {
    for (;;) {
        int sem = semaphore(lock);
        __atomic_fetch_add(&lock->waiters, 1, __ATOMIC_SEQ_CST);
        if (take(lock, self))
            return;
        if (sem != 0)
            portal_call(sem);
        else
            portal_call(SYS_HRSLEEP, portal_call(SYS_HRTIME).value + TIME_HZ / 1000);
    }
}

/* Then it is their turn, though this thread may want the lock again at once. */
APART void wake_all(struct __lock *lock) {
    int waiters = __atomic_exchange_n(&lock->waiters, 0, __ATOMIC_SEQ_CST);
    long sem = __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
    if (sem != 0 && (sem & COPY) == __copies)
        while (waiters-- > 0)
            portal_call((sem >> 4) + 1);
    portal_call(SYS_YIELD);
}

void __retarget_lock_acquire_recursive(struct __lock *lock) {
    if (lock == NULL)
        return;
    long me = self();
    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == me) {
        lock->depth++;
        return;
    }
    if (!take(lock, me))
        wait_for(lock, me);
}

int __retarget_lock_try_acquire_recursive(struct __lock *lock) {
    if (lock == NULL)
        return 1;
    long me = self();
    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != me)
        return take(lock, me);
    lock->depth++;
    return 1;
}

void __retarget_lock_release_recursive(struct __lock *lock) {
    if (lock == NULL || __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != self() || --lock->depth > 0)
        return;
    __atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&lock->waiters, __ATOMIC_SEQ_CST) > 0)
        wake_all(lock);
}

void __retarget_lock_init_recursive(_LOCK_T *lock) { *lock = calloc(1, sizeof **lock); }

void __retarget_lock_close_recursive(struct __lock *lock) {
    if (lock != NULL && lock->sem != 0 && (lock->sem & COPY) == __copies)
        portal_call(SYS_PORTAL_CLOSE, lock->sem >> 4, 2);
    free(lock);
}

void __retarget_lock_init(_LOCK_T *lock) { __retarget_lock_init_recursive(lock); }
void __retarget_lock_close(struct __lock *lock) { __retarget_lock_close_recursive(lock); }
void __retarget_lock_acquire(struct __lock *lock) { __retarget_lock_acquire_recursive(lock); }
int __retarget_lock_try_acquire(struct __lock *lock) { return __retarget_lock_try_acquire_recursive(lock); }
void __retarget_lock_release(struct __lock *lock) { __retarget_lock_release_recursive(lock); }
