/*
 * POSIX threads. A domain has 32 threads at most, each with a stack of 60 KiB; what is needed beyond them is waiting.c's. There is no
 * cancellation, there are no signals, and nothing is shared with other domains. lib/c/README.md says what is different.
 */
#ifndef PEBBLE_PTHREAD_H
#define PEBBLE_PTHREAD_H

#include <limits.h>
#include <sched.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#undef PTHREAD_STACK_MIN
#undef PTHREAD_KEYS_MAX
#undef PTHREAD_THREADS_MAX
#undef PTHREAD_DESTRUCTOR_ITERATIONS
#define PTHREAD_STACK_MIN 4096
#define PTHREAD_KEYS_MAX 128
#define PTHREAD_THREADS_MAX 32
#define PTHREAD_DESTRUCTOR_ITERATIONS 4

typedef struct __pthread *pthread_t;
typedef unsigned pthread_key_t;
typedef struct {
    int detached;
    size_t stack;
} pthread_attr_t;
typedef struct {
    int kind;
} pthread_mutexattr_t;
typedef struct {
    clockid_t clock;
} pthread_condattr_t;
typedef struct {
    int unused;
} pthread_rwlockattr_t, pthread_barrierattr_t;

/* All zero is what each is initialized with. */
typedef struct {
    int state; /* 0: free; 1: taken; 2: taken, and perhaps somebody waits */
    int kind;
    long owner; /* its thread-local block */
    int depth;
} pthread_mutex_t;
typedef struct {
    int sequence; /* other whenever somebody is to be woken */
    int waiters;
    clockid_t clock; /* 0: the real one */
} pthread_cond_t;
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int active; /* readers; -1: a writer */
    int writers; /* that wait */
    long writer;
} pthread_rwlock_t;
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t full;
    unsigned wanted, there, turn;
} pthread_barrier_t;
typedef struct {
    int state;
} pthread_once_t;

#define PTHREAD_MUTEX_INITIALIZER {0}
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP {.kind = PTHREAD_MUTEX_RECURSIVE}
#define PTHREAD_COND_INITIALIZER {0}
#define PTHREAD_RWLOCK_INITIALIZER {0}
#define PTHREAD_ONCE_INIT {0}

enum { PTHREAD_CREATE_JOINABLE, PTHREAD_CREATE_DETACHED };
/* A thread that locks what it has gets EDEADLK, but for a recursive mutex. */
enum { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_DEFAULT = PTHREAD_MUTEX_NORMAL };
#define PTHREAD_BARRIER_SERIAL_THREAD (-1)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int pthread_join(pthread_t thread, void **result);
int pthread_detach(pthread_t thread);
pthread_t pthread_self(void);
int pthread_equal(pthread_t a, pthread_t b);
void pthread_exit(void *result) __attribute__((noreturn));
int pthread_once(pthread_once_t *once, void (*function)(void));

int pthread_attr_init(pthread_attr_t *attributes);
int pthread_attr_destroy(pthread_attr_t *attributes);
int pthread_attr_setdetachstate(pthread_attr_t *attributes, int detached);
int pthread_attr_getdetachstate(const pthread_attr_t *attributes, int *detached);
/* EINVAL above what a stack has. */
int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size);
int pthread_attr_getstacksize(const pthread_attr_t *attributes, size_t *size);

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int pthread_key_delete(pthread_key_t key);
int pthread_setspecific(pthread_key_t key, const void *value);
void *pthread_getspecific(pthread_key_t key);

int pthread_mutexattr_init(pthread_mutexattr_t *attributes);
int pthread_mutexattr_destroy(pthread_mutexattr_t *attributes);
int pthread_mutexattr_settype(pthread_mutexattr_t *attributes, int kind);
int pthread_mutexattr_gettype(const pthread_mutexattr_t *attributes, int *kind);
int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
int pthread_mutex_unlock(pthread_mutex_t *mutex);

int pthread_condattr_init(pthread_condattr_t *attributes);
int pthread_condattr_destroy(pthread_condattr_t *attributes);
int pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock);
int pthread_condattr_getclock(const pthread_condattr_t *attributes, clockid_t *clock);
int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes);
int pthread_cond_destroy(pthread_cond_t *cond);
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);

/* Writers come before readers that have not begun. */
int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes);
int pthread_rwlock_destroy(pthread_rwlock_t *lock);
int pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock);
int pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int pthread_rwlock_trywrlock(pthread_rwlock_t *lock);
int pthread_rwlock_unlock(pthread_rwlock_t *lock);

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count);
int pthread_barrier_destroy(pthread_barrier_t *barrier);
int pthread_barrier_wait(pthread_barrier_t *barrier);

#ifdef __cplusplus
}
#endif
#endif
