/*
 * POSIX semaphores, of one domain. pebble.h has semaphores of the system under the same names, which domains can share: a file includes one
 * of the two.
 */
#ifndef PEBBLE_SEMAPHORE_H
#define PEBBLE_SEMAPHORE_H

#ifdef PEBBLE_H
#error "pebble.h and semaphore.h both have sem_wait and sem_post: a file can include one of them"
#endif

#include <limits.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int value;
} sem_t;

#define SEM_VALUE_MAX INT_MAX
#define SEM_FAILED ((sem_t *)0)

/* Shared: ENOSYS. */
int sem_init(sem_t *sem, int shared, unsigned value) __asm__("__posix_sem_init");
int sem_destroy(sem_t *sem) __asm__("__posix_sem_destroy");
int sem_wait(sem_t *sem) __asm__("__posix_sem_wait");
int sem_trywait(sem_t *sem) __asm__("__posix_sem_trywait");
int sem_timedwait(sem_t *sem, const struct timespec *until) __asm__("__posix_sem_timedwait");
int sem_post(sem_t *sem) __asm__("__posix_sem_post");
int sem_getvalue(sem_t *sem, int *value) __asm__("__posix_sem_getvalue");

#ifdef __cplusplus
}
#endif
#endif
