/*
 * pthread.h: threads, what they have for themselves, and what is done once.
 *
 * A thread's record says in one word, its fate, what becomes of it: it can be joined; nobody will; somebody does; it has ended. Whoever
 * makes the change after which nobody needs the record gives it back. So neither the thread that ends nor the one that joins it looks at it
 * again.
 *
 * A thread that pthread_create has not made (the first; one of thread_create; a caller in a server) has a record of its own among its
 * thread-local variables. It ends like any other, but cannot be joined.
 */
#include "internal.h"
#include "waiting.h"

#include <pthread.h>
#include <sys/lock.h>

enum { JOINABLE, DETACHED, JOINING, ENDED };

struct __pthread {
    int fate;
    void *(*function)(void *);
    void *argument, *result;
};

static _Thread_local struct __pthread own = {.fate = DETACHED};
static _Thread_local struct __pthread *made;
/* The values of the keys, once it has set one. */
static _Thread_local void **values;

pthread_t pthread_self(void) { return made != NULL ? made : &own; }

int pthread_equal(pthread_t a, pthread_t b) { return a == b; }

/* --- Keys ------------------------------------------------------------------------------------------------- */

static struct {
    int used;
    void (*destructor)(void *);
} keys[PTHREAD_KEYS_MAX];
static struct __lock lock; /* of the keys */

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    int result = EAGAIN;
    __retarget_lock_acquire(&lock);
    for (pthread_key_t i = 0; i < PTHREAD_KEYS_MAX && result != 0; i++)
        if (!keys[i].used) {
            keys[i].used = 1;
            keys[i].destructor = destructor;
            *key = i;
            result = 0;
        }
    __retarget_lock_release(&lock);
    return result;
}

/* Values that threads have under it are theirs to care for. */
int pthread_key_delete(pthread_key_t key) {
    if (key >= PTHREAD_KEYS_MAX || !keys[key].used)
        return EINVAL;
    __retarget_lock_acquire(&lock);
    keys[key].used = 0;
    keys[key].destructor = NULL;
    __retarget_lock_release(&lock);
    return 0;
}

int pthread_setspecific(pthread_key_t key, const void *value) {
    if (key >= PTHREAD_KEYS_MAX || !keys[key].used)
        return EINVAL;
    if (values == NULL && (values = calloc(PTHREAD_KEYS_MAX, sizeof *values)) == NULL)
        return ENOMEM;
    values[key] = (void *)value;
    return 0;
}

void *pthread_getspecific(pthread_key_t key) { return values != NULL && key < PTHREAD_KEYS_MAX ? values[key] : NULL; }

/* Destructors may set values again, but not without end. */
static void destroy_values(void) {
    int some = values != NULL;
    for (int round = 0; some && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
        some = 0;
        for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
            void *value = values[key];
            void (*destructor)(void *) = keys[key].destructor;
            values[key] = NULL;
            if (value != NULL && destructor != NULL) {
                destructor(value);
                some = 1;
            }
        }
    }
    free(values);
    values = NULL;
}

/* --- Threads ---------------------------------------------------------------------------------------------- */

void pthread_exit(void *result) {
    pthread_t me = pthread_self();
    destroy_values();
    me->result = result;
    switch (__atomic_exchange_n(&me->fate, ENDED, __ATOMIC_ACQ_REL)) {
    case DETACHED:
        if (me != &own)
            free(me);
        break;
    case JOINING: __wake(&me->fate, 1); break; /* an address: the record may be gone */
    default: break;
    }
    thread_exit();
}

static void run(void *record) {
    made = record;
    pthread_exit(made->function(made->argument));
}

/* Threads that have ended are freed a moment later, so there may be room for another soon. */
static int start(pthread_t thread) {
    for (int tries = 0; tries < 10; tries++) {
        if (thread_create(run, thread) >= 0)
            return 0;
        msleep(1);
    }
    return EAGAIN;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    pthread_t record = malloc(sizeof *record);
    if (record == NULL)
        return EAGAIN;
    int detached = attributes != NULL && attributes->detached == PTHREAD_CREATE_DETACHED;
    *record = (struct __pthread){detached ? DETACHED : JOINABLE, function, argument, NULL};
    *thread = record; /* before it runs, as it may look */
    int error = start(record);
    if (error != 0)
        free(record);
    return error;
}

int pthread_join(pthread_t thread, void **result) {
    if (thread == pthread_self())
        return EDEADLK;
    int fate = JOINABLE;
    if (!__atomic_compare_exchange_n(&thread->fate, &fate, JOINING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && fate != ENDED)
        return EINVAL;
    while (__atomic_load_n(&thread->fate, __ATOMIC_ACQUIRE) == JOINING)
        __wait_while(&thread->fate, JOINING, FOREVER);
    if (result != NULL)
        *result = thread->result;
    free(thread);
    return 0;
}

int pthread_detach(pthread_t thread) {
    int fate = JOINABLE;
    if (__atomic_compare_exchange_n(&thread->fate, &fate, DETACHED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return 0;
    if (fate != ENDED)
        return EINVAL;
    free(thread);
    return 0;
}

/* --- Once ------------------------------------------------------------------------------------------------- */

enum { NEVER, NOW, DONE };

int pthread_once(pthread_once_t *once, void (*function)(void)) {
    int state = NEVER;
    if (__atomic_compare_exchange_n(&once->state, &state, NOW, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        function();
        __atomic_store_n(&once->state, DONE, __ATOMIC_RELEASE);
        __wake(&once->state, INT_MAX);
    }
    while (__atomic_load_n(&once->state, __ATOMIC_ACQUIRE) != DONE)
        __wait_while(&once->state, NOW, FOREVER);
    return 0;
}

/* --- Attributes ------------------------------------------------------------------------------------------- */

#define STACK_BYTES (STACK_SLOT - PAGE_BYTES) /* the lowest page is not there */

int pthread_attr_init(pthread_attr_t *attributes) {
    *attributes = (pthread_attr_t){PTHREAD_CREATE_JOINABLE, STACK_BYTES};
    return 0;
}

int pthread_attr_destroy(pthread_attr_t *attributes) {
    (void)attributes;
    return 0;
}

int pthread_attr_setdetachstate(pthread_attr_t *attributes, int detached) {
    if (detached != PTHREAD_CREATE_JOINABLE && detached != PTHREAD_CREATE_DETACHED)
        return EINVAL;
    attributes->detached = detached;
    return 0;
}

int pthread_attr_getdetachstate(const pthread_attr_t *attributes, int *detached) {
    *detached = attributes->detached;
    return 0;
}

int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
    if (size < PTHREAD_STACK_MIN || size > STACK_BYTES)
        return EINVAL;
    attributes->stack = size;
    return 0;
}

int pthread_attr_getstacksize(const pthread_attr_t *attributes, size_t *size) {
    *size = attributes->stack;
    return 0;
}
