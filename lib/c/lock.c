/*
 * The locks that the C library takes around malloc, exit handlers and every stream. A lock costs one atomic
 * instruction until two threads meet at it; only then does it get a semaphore. A program that has used up its portals
 * gets none: then who releases the lock counts a turn, and waiters look for one every millisecond. Whoever makes the
 * semaphore looks for a turn afterwards, and whoever counts a turn for the semaphore, so none is left lying.
 * Every lock is recursive. The preserved errno matters here: taking a lock must not change it.
 */
#include "internal.h"

#include <sys/lock.h>

struct __lock __lock___libc_recursive_mutex;

/* The semaphore; 0 if there is none and none can be had now. */
static int semaphore(struct __lock *lock) {
    int sem = __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
    if (sem != 0)
        return sem;
    long made = portal_call(SYS_SEM_CREATE, 0).value;
    if (made < 0)
        return __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
    if (__atomic_compare_exchange_n(&lock->sem, &sem, (int)made, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return (int)made;
    portal_call(SYS_PORTAL_CLOSE, made, 2);
    return sem;
}

static int take_turn(struct __lock *lock) {
    int turns = __atomic_load_n(&lock->turns, __ATOMIC_SEQ_CST);
    while (turns > 0)
        if (__atomic_compare_exchange_n(&lock->turns, &turns, turns - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return 1;
    return 0;
}

static void wait_for_turn(struct __lock *lock) {
    for (;;) {
        int sem = semaphore(lock);
        if (take_turn(lock))
            return;
        if (sem != 0) {
            portal_call(sem);
            return;
        }
        portal_call(SYS_HRSLEEP, portal_call(SYS_HRTIME).value + TIME_HZ / 1000);
    }
}

static void give_turn(struct __lock *lock) {
    int sem = __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
    if (sem == 0) {
        __atomic_fetch_add(&lock->turns, 1, __ATOMIC_SEQ_CST);
        sem = __atomic_load_n(&lock->sem, __ATOMIC_SEQ_CST);
        if (sem == 0 || !take_turn(lock))
            return;
    }
    portal_call(sem + 1);
}

void __retarget_lock_acquire_recursive(struct __lock *lock) {
    void *self = __builtin_thread_pointer();
    if (lock == NULL)
        return;
    if (lock->owner == self) {
        lock->depth++;
        return;
    }
    if (__atomic_fetch_add(&lock->users, 1, __ATOMIC_ACQUIRE) > 0)
        wait_for_turn(lock);
    lock->owner = self;
    lock->depth = 1;
}

int __retarget_lock_try_acquire_recursive(struct __lock *lock) {
    int none = 0;
    if (lock != NULL && lock->owner != __builtin_thread_pointer() &&
        !__atomic_compare_exchange_n(&lock->users, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
    if (lock != NULL) {
        lock->depth = lock->owner == __builtin_thread_pointer() ? lock->depth + 1 : 1;
        lock->owner = __builtin_thread_pointer();
    }
    return 1;
}

void __retarget_lock_release_recursive(struct __lock *lock) {
    if (lock == NULL || --lock->depth > 0)
        return;
    lock->owner = NULL;
    if (__atomic_fetch_sub(&lock->users, 1, __ATOMIC_RELEASE) > 1)
        give_turn(lock);
}

void __retarget_lock_init_recursive(_LOCK_T *lock) { *lock = calloc(1, sizeof **lock); }

void __retarget_lock_close_recursive(struct __lock *lock) {
    if (lock != NULL && lock->sem != 0)
        portal_call(SYS_PORTAL_CLOSE, lock->sem, 2);
    free(lock);
}

void __retarget_lock_init(_LOCK_T *lock) { __retarget_lock_init_recursive(lock); }
void __retarget_lock_close(struct __lock *lock) { __retarget_lock_close_recursive(lock); }
void __retarget_lock_acquire(struct __lock *lock) { __retarget_lock_acquire_recursive(lock); }
int __retarget_lock_try_acquire(struct __lock *lock) { return __retarget_lock_try_acquire_recursive(lock); }
void __retarget_lock_release(struct __lock *lock) { __retarget_lock_release_recursive(lock); }
