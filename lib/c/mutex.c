/*
 * pthread.h: what threads wait for.
 *
 * A mutex is one word: 0, 1, or 2 if perhaps somebody waits, so that nobody is called for who is not there. A condition variable counts
 * how often it was signalled: who has read the count under the mutex, and finds another, has been signalled meanwhile. The rest is made of
 * these two.
 *
 * Invariant: the last thing that unlocking does to a mutex is the change that frees it. Who gets it then may give its memory back.
 */
#include "internal.h"
#include "waiting.h"

#include <pthread.h>

static long self(void) { return (long)PEBBLE_BLOCK(); }

/* --- Mutexes ---------------------------------------------------------------------------------------------- */

int pthread_mutexattr_init(pthread_mutexattr_t *attributes) {
    *attributes = (pthread_mutexattr_t){PTHREAD_MUTEX_DEFAULT};
    return 0;
}

int pthread_mutexattr_destroy(pthread_mutexattr_t *attributes) {
    (void)attributes;
    return 0;
}

int pthread_mutexattr_settype(pthread_mutexattr_t *attributes, int kind) {
    if (kind < PTHREAD_MUTEX_NORMAL || kind > PTHREAD_MUTEX_RECURSIVE)
        return EINVAL;
    attributes->kind = kind;
    return 0;
}

int pthread_mutexattr_gettype(const pthread_mutexattr_t *attributes, int *kind) {
    *kind = attributes->kind;
    return 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
    *mutex = (pthread_mutex_t){.kind = attributes == NULL ? PTHREAD_MUTEX_DEFAULT : attributes->kind};
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    return __atomic_load_n(&mutex->state, __ATOMIC_RELAXED) == 0 ? 0 : EBUSY;
}

/* 0: it is this thread's now; 2 if others may wait for it. */
static int take(pthread_mutex_t *mutex, int as) {
    int state = 0;
    if (as == 2)
        return __atomic_exchange_n(&mutex->state, 2, __ATOMIC_ACQUIRE);
    __atomic_compare_exchange_n(&mutex->state, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    return state;
}

static int own(pthread_mutex_t *mutex) {
    __atomic_store_n(&mutex->owner, self(), __ATOMIC_RELAXED);
    mutex->depth = 1;
    return 0;
}

/* What this thread has already; -1: it has not. */
static int again(pthread_mutex_t *mutex) {
    if (__atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) != self())
        return -1;
    if (mutex->kind != PTHREAD_MUTEX_RECURSIVE)
        return EDEADLK;
    if (mutex->depth == INT_MAX)
        return EAGAIN;
    mutex->depth++;
    return 0;
}

static int lock_until(pthread_mutex_t *mutex, long until) {
    int held = again(mutex);
    if (held >= 0)
        return held;
    if (take(mutex, 1) == 0)
        return own(mutex);
    while (take(mutex, 2) != 0)
        if (__wait_while(&mutex->state, 2, until) == ETIMEDOUT)
            return ETIMEDOUT;
    return own(mutex);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) { return lock_until(mutex, FOREVER); }

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time) {
    if (again(mutex) < 0 && take(mutex, 1) == 0)
        return own(mutex);
    int result;
    do {
        long until = __deadline(time, CLOCK_REALTIME);
        result = until < 0 ? EINVAL : lock_until(mutex, until);
    } while (result == ETIMEDOUT && !__is_late(time, CLOCK_REALTIME));
    return result;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    int held = again(mutex);
    if (held >= 0)
        return held == EDEADLK ? EBUSY : held;
    return take(mutex, 1) == 0 ? own(mutex) : EBUSY;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (__atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) != self())
        return EPERM;
    if (--mutex->depth > 0)
        return 0;
    __atomic_store_n(&mutex->owner, 0, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&mutex->state, 0, __ATOMIC_RELEASE) == 2)
        __wake(&mutex->state, 1);
    return 0;
}

/* --- Condition variables ---------------------------------------------------------------------------------- */

int pthread_condattr_init(pthread_condattr_t *attributes) {
    *attributes = (pthread_condattr_t){CLOCK_REALTIME};
    return 0;
}

int pthread_condattr_destroy(pthread_condattr_t *attributes) {
    (void)attributes;
    return 0;
}

int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return EINVAL;
    attributes->clock = clock;
    return 0;
}

int pthread_condattr_getclock(const pthread_condattr_t *attributes, clockid_t *clock) {
    *clock = attributes->clock;
    return 0;
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
    *cond = (pthread_cond_t){.clock = attributes == NULL ? 0 : attributes->clock};
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond) {
    (void)cond;
    return 0;
}

/* The mutex is given up as deep as it was taken. */
static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, long until) {
    if (__atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) != self())
        return EPERM;
    int sequence = __atomic_load_n(&cond->sequence, __ATOMIC_SEQ_CST), depth = mutex->depth;
    __atomic_fetch_add(&cond->waiters, 1, __ATOMIC_SEQ_CST);
    mutex->depth = 1;
    pthread_mutex_unlock(mutex);
    int result = __wait_while(&cond->sequence, sequence, until);
    __atomic_fetch_sub(&cond->waiters, 1, __ATOMIC_SEQ_CST);
    lock_until(mutex, FOREVER);
    mutex->depth = depth;
    return result;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return wait_until(cond, mutex, FOREVER); }

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time) {
    clockid_t clock = cond->clock == 0 ? CLOCK_REALTIME : cond->clock;
    long until = __deadline(time, clock);
    int result = until < 0 ? EINVAL : wait_until(cond, mutex, until);
    /* Too early, the caller looks again, as it must in any case. */
    return result == ETIMEDOUT && !__is_late(time, clock) ? 0 : result;
}

static int signal_to(pthread_cond_t *cond, int most) {
    if (__atomic_load_n(&cond->waiters, __ATOMIC_SEQ_CST) > 0) {
        __atomic_fetch_add(&cond->sequence, 1, __ATOMIC_SEQ_CST);
        __wake(&cond->sequence, most);
    }
    return 0;
}

int pthread_cond_signal(pthread_cond_t *cond) { return signal_to(cond, 1); }

int pthread_cond_broadcast(pthread_cond_t *cond) { return signal_to(cond, INT_MAX); }

/* --- Locks for readers and writers ------------------------------------------------------------------------ */

int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes) {
    (void)attributes;
    *lock = (pthread_rwlock_t){0};
    return 0;
}

int pthread_rwlock_destroy(pthread_rwlock_t *lock) { return lock->active == 0 ? 0 : EBUSY; }

static int may_read(const pthread_rwlock_t *lock) { return lock->active >= 0 && lock->writers == 0; }
static int may_write(const pthread_rwlock_t *lock) { return lock->active == 0; }

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    pthread_mutex_lock(&lock->mutex);
    int result = lock->writer == self() ? EDEADLK : 0;
    while (result == 0 && !may_read(lock))
        pthread_cond_wait(&lock->changed, &lock->mutex);
    lock->active += result == 0;
    pthread_mutex_unlock(&lock->mutex);
    return result;
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    pthread_mutex_lock(&lock->mutex);
    int result = may_read(lock) ? 0 : EBUSY;
    lock->active += result == 0;
    pthread_mutex_unlock(&lock->mutex);
    return result;
}

/* Under its mutex: it is this thread's. */
static void write_to(pthread_rwlock_t *lock) {
    lock->active = -1;
    lock->writer = self();
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    pthread_mutex_lock(&lock->mutex);
    int result = lock->writer == self() ? EDEADLK : 0;
    if (result == 0) {
        lock->writers++;
        while (!may_write(lock))
            pthread_cond_wait(&lock->changed, &lock->mutex);
        lock->writers--;
        write_to(lock);
    }
    pthread_mutex_unlock(&lock->mutex);
    return result;
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    pthread_mutex_lock(&lock->mutex);
    int result = may_write(lock) ? 0 : EBUSY;
    if (result == 0)
        write_to(lock);
    pthread_mutex_unlock(&lock->mutex);
    return result;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    pthread_mutex_lock(&lock->mutex);
    int result = lock->active == 0 || (lock->active < 0 && lock->writer != self()) ? EPERM : 0;
    if (result == 0) {
        lock->writer = 0;
        lock->active -= lock->active < 0 ? -1 : 1;
        if (lock->active == 0)
            pthread_cond_broadcast(&lock->changed);
    }
    pthread_mutex_unlock(&lock->mutex);
    return result;
}

/* --- Barriers --------------------------------------------------------------------------------------------- */

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count) {
    (void)attributes;
    if (count == 0)
        return EINVAL;
    *barrier = (pthread_barrier_t){.wanted = count};
    return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier) {
    pthread_mutex_lock(&barrier->mutex); /* the last to leave has it until it is out */
    int result = barrier->there == 0 ? 0 : EBUSY;
    pthread_mutex_unlock(&barrier->mutex);
    return result;
}

int pthread_barrier_wait(pthread_barrier_t *barrier) {
    pthread_mutex_lock(&barrier->mutex);
    unsigned turn = barrier->turn;
    int last = ++barrier->there == barrier->wanted;
    if (last) {
        barrier->there = 0;
        barrier->turn++;
        pthread_cond_broadcast(&barrier->full);
    }
    while (turn == barrier->turn)
        pthread_cond_wait(&barrier->full, &barrier->mutex);
    pthread_mutex_unlock(&barrier->mutex);
    return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
