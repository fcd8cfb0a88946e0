/* semaphore.h: a number, for which threads wait that find it 0. */
#include "waiting.h"

#include <errno.h>
#include <semaphore.h>

static int fail(int error) {
    errno = error;
    return -1;
}

int sem_init(sem_t *sem, int shared, unsigned value) {
    if (value > SEM_VALUE_MAX)
        return fail(EINVAL);
    if (shared)
        return fail(ENOSYS);
    sem->value = (int)value;
    return 0;
}

int sem_destroy(sem_t *sem) {
    (void)sem;
    return 0;
}

/* True: one less. */
static int take(sem_t *sem) {
    int value = __atomic_load_n(&sem->value, __ATOMIC_RELAXED);
    while (value > 0)
        if (__atomic_compare_exchange_n(&sem->value, &value, value - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

int sem_trywait(sem_t *sem) { return take(sem) ? 0 : fail(EAGAIN); }

static int wait_until(sem_t *sem, long until) {
    while (!take(sem))
        if (__wait_while(&sem->value, 0, until) == ETIMEDOUT)
            return take(sem) ? 0 : fail(ETIMEDOUT);
    return 0;
}

int sem_wait(sem_t *sem) { return wait_until(sem, FOREVER); }

int sem_timedwait(sem_t *sem, const struct timespec *time) {
    if (take(sem))
        return 0;
    int result;
    do {
        long until = __deadline(time, CLOCK_REALTIME);
        result = until < 0 ? fail(EINVAL) : wait_until(sem, until);
    } while (result < 0 && errno == ETIMEDOUT && !__is_late(time, CLOCK_REALTIME));
    return result;
}

int sem_post(sem_t *sem) {
    int value = __atomic_load_n(&sem->value, __ATOMIC_RELAXED);
    do
        if (value == SEM_VALUE_MAX)
            return fail(EOVERFLOW);
    while (!__atomic_compare_exchange_n(&sem->value, &value, value + 1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    __wake(&sem->value, 1);
    return 0;
}

int sem_getvalue(sem_t *sem, int *value) {
    *value = __atomic_load_n(&sem->value, __ATOMIC_RELAXED);
    return 0;
}
