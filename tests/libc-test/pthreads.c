/* POSIX threads: each thing once as it is meant, and once as it is not. */
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 300 };

static struct timespec in(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    long ns = time.tv_nsec + milliseconds * 1000000;
    return (struct timespec){time.tv_sec + ns / 1000000000, ns % 1000000000};
}

static void *same_back(void *value) {
    errno = (int)(long)value; /* each thread's own */
    yield();
    if (errno != (int)(long)value)
        return NULL;
    if ((long)value % 2)
        pthread_exit(value);
    return value;
}

static void threads_end_and_are_joined(void) {
    pthread_t thread;
    void *result;
    for (long i = 1; i <= ROUNDS; i++)
        if (pthread_create(&thread, NULL, same_back, (void *)i) != 0 || pthread_join(thread, &result) != 0 || result != (void *)i) {
            CHECK(!"a thread in a row");
            break;
        }
    CHECK(pthread_join(pthread_self(), NULL) == EDEADLK && pthread_equal(pthread_self(), pthread_self()));
    pthread_attr_t attributes;
    size_t size;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_getstacksize(&attributes, &size) == 0 && size == STACK_SLOT - PAGE_BYTES);
    CHECK(pthread_attr_setstacksize(&attributes, 1 << 20) == EINVAL && pthread_attr_setstacksize(&attributes, 32768) == 0);
    CHECK(pthread_attr_setdetachstate(&attributes, 7) == EINVAL);
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    for (long i = 0; i < ROUNDS; i++)
        CHECK(pthread_create(&thread, &attributes, same_back, (void *)i) == 0);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return unused;
}

/* 31 beside the first, each with a stack; the error is the right one, and afterwards there is room again. */
static void there_are_so_many_threads(void) {
    pthread_t threads[64];
    for (int round = 0; round < 2; round++) {
        int made = 0, error = 0;
        pthread_mutex_lock(&gate);
        while (made < 64 && (error = pthread_create(&threads[made], NULL, wait_at_gate, NULL)) == 0)
            made++;
        CHECK(error == EAGAIN && made >= 28 && made <= PTHREAD_THREADS_MAX);
        pthread_mutex_unlock(&gate);
        while (made > 0)
            CHECK(pthread_join(threads[--made], NULL) == 0);
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int counter;

static void *count(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        int before = counter;
        if (i % 8 == 0)
            yield();
        counter = before + 1;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *meddle(void *other) {
    struct timespec soon = in(CLOCK_REALTIME, 5), never = {soon.tv_sec, 1000000000}, past = {0, 0};
    CHECK(pthread_mutex_trylock(other) == EBUSY && pthread_mutex_unlock(other) == EPERM);
    CHECK(pthread_mutex_timedlock(other, &soon) == ETIMEDOUT && pthread_mutex_timedlock(other, &past) == ETIMEDOUT);
    CHECK(pthread_mutex_timedlock(other, &never) == EINVAL);
    return NULL;
}

static void run(int count, void *(*function)(void *), void *argument) {
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, function, argument) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void mutexes_exclude(void) {
    run(THREADS, count, NULL);
    CHECK(counter == THREADS * ROUNDS && pthread_mutex_destroy(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM && pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EDEADLK && pthread_mutex_trylock(&mutex) == EBUSY);
    CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
    run(1, meddle, &mutex);
    pthread_mutex_unlock(&mutex);

    pthread_mutexattr_t attributes;
    pthread_mutex_t deep;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_settype(&attributes, 9) == EINVAL);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(&deep, &attributes) == 0 && pthread_mutex_lock(&deep) == 0 && pthread_mutex_trylock(&deep) == 0);
    pthread_mutex_unlock(&deep);
    run(1, meddle, &deep);
    CHECK(pthread_mutex_unlock(&deep) == 0 && pthread_mutex_unlock(&deep) == EPERM);
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, awake, go;

static void *take_turns(void *mine) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != (int)(long)mine)
            pthread_cond_wait(&changed, &mutex);
        turn = !turn;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *await_go(void *unused) {
    pthread_mutex_lock(&mutex);
    awake++;
    while (!go)
        pthread_cond_wait(&changed, &mutex);
    awake--;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void conditions_wake(void) {
    pthread_t other, waiters[THREADS];
    CHECK(pthread_create(&other, NULL, take_turns, (void *)1) == 0);
    take_turns((void *)0);
    CHECK(pthread_join(other, NULL) == 0 && turn == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&waiters[i], NULL, await_go, NULL);
    for (int all = 0; !all; yield()) {
        pthread_mutex_lock(&mutex);
        if ((all = awake == THREADS)) {
            go = 1;
            pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(waiters[i], NULL);
    CHECK(awake == 0);

    CHECK(pthread_cond_wait(&changed, &mutex) == EPERM);
    pthread_mutex_lock(&mutex);
    struct timespec soon = in(CLOCK_REALTIME, 5), past = {0, 0}, never = {soon.tv_sec, -1};
    int result;
    while ((result = pthread_cond_timedwait(&changed, &mutex, &soon)) == 0)
        ;
    struct timespec now = in(CLOCK_REALTIME, 0);
    CHECK(result == ETIMEDOUT && (now.tv_sec > soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec >= soon.tv_nsec)));
    CHECK(pthread_cond_timedwait(&changed, &mutex, &past) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&changed, &mutex, &never) == EINVAL);
    pthread_condattr_t attributes;
    pthread_cond_t steady;
    pthread_condattr_init(&attributes);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(&steady, &attributes) == 0);
    soon = in(CLOCK_MONOTONIC, 5);
    CHECK(pthread_cond_timedwait(&steady, &mutex, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&mutex) == EBUSY && pthread_mutex_unlock(&mutex) == 0);
}

/* Woken by a signal and by their time at once: whoever was not woken took no signal with it. */
static int tokens, taken;

static void *take_tokens(void *milliseconds) {
    pthread_mutex_lock(&mutex);
    while (taken < 200) {
        struct timespec soon = in(CLOCK_REALTIME, (long)milliseconds);
        while (tokens == 0 && taken < 200)
            if (pthread_cond_timedwait(&changed, &mutex, &soon) == ETIMEDOUT)
                break;
        if (tokens > 0) {
            tokens--;
            taken++;
        }
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void late_and_woken(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, take_tokens, (void *)(i == 0 ? 1L : 1000000L));
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&mutex);
        tokens++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
        hrsleep(hrtime() + (i % 8) * (TIME_HZ / 4000));
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(taken == 200 && tokens == 0);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int done, seen;

static void do_it(void) {
    msleep(2);
    done++;
}

static void *see(void *unused) {
    pthread_once(&once, do_it);
    __atomic_fetch_add(&seen, done, __ATOMIC_SEQ_CST);
    return unused;
}

static pthread_key_t key, other_key;
static int destroyed;

static void destroy(void *value) {
    destroyed += (int)(long)value;
    if (value == (void *)1)
        pthread_setspecific(other_key, (void *)10); /* once more */
}

static void set_again(void *value) { pthread_setspecific(other_key, value); }

static void *use_keys(void *unused) {
    CHECK(pthread_getspecific(key) == NULL && pthread_setspecific(key, (void *)1) == 0 && pthread_getspecific(key) == (void *)1);
    return unused;
}

static void *use_stubborn_key(void *unused) {
    pthread_setspecific(other_key, (void *)1);
    return unused;
}

static void once_and_keys(void) {
    run(THREADS, see, NULL);
    CHECK(done == 1 && seen == THREADS);
    CHECK(pthread_key_create(&key, destroy) == 0 && pthread_key_create(&other_key, destroy) == 0);
    run(1, use_keys, NULL);
    CHECK(destroyed == 11);
    CHECK(pthread_key_delete(other_key) == 0 && pthread_key_delete(other_key) == EINVAL);
    CHECK(pthread_setspecific(other_key, &key) == EINVAL && pthread_setspecific(PTHREAD_KEYS_MAX, &key) == EINVAL);
    CHECK(pthread_key_create(&other_key, set_again) == 0);
    run(1, use_stubborn_key, NULL); /* it ends all the same */
    pthread_key_t more;
    int made = 0;
    while (made < 1000 && pthread_key_create(&more, NULL) == 0)
        made++;
    CHECK(made == PTHREAD_KEYS_MAX - 2 && pthread_key_create(&more, NULL) == EAGAIN);
}

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static volatile int first_half, second_half;

static void *read_and_write(void *unused) {
    for (int i = 0; i < ROUNDS; i++)
        if (i % 4 == 0) {
            pthread_rwlock_wrlock(&shared);
            first_half++;
            if (i % 16 == 0)
                yield();
            second_half++;
            pthread_rwlock_unlock(&shared);
        } else {
            pthread_rwlock_rdlock(&shared);
            CHECK(first_half == second_half);
            pthread_rwlock_unlock(&shared);
        }
    return unused;
}

static pthread_barrier_t barrier;
static int serial, there;

static void *meet(void *unused) {
    for (int round = 1; round <= 20; round++) {
        __atomic_fetch_add(&there, 1, __ATOMIC_SEQ_CST);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
        CHECK(__atomic_load_n(&there, __ATOMIC_SEQ_CST) >= round * THREADS);
    }
    return unused;
}

static void locks_and_barriers(void) {
    run(THREADS, read_and_write, NULL);
    CHECK(first_half == THREADS * ROUNDS / 4 && pthread_rwlock_unlock(&shared) == EPERM);
    CHECK(pthread_rwlock_rdlock(&shared) == 0 && pthread_rwlock_tryrdlock(&shared) == 0 && pthread_rwlock_trywrlock(&shared) == EBUSY);
    pthread_rwlock_unlock(&shared);
    pthread_rwlock_unlock(&shared);
    CHECK(pthread_rwlock_wrlock(&shared) == 0 && pthread_rwlock_wrlock(&shared) == EDEADLK);
    CHECK(pthread_rwlock_tryrdlock(&shared) == EBUSY && pthread_rwlock_unlock(&shared) == 0 && pthread_rwlock_destroy(&shared) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, 0) == EINVAL && pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    run(THREADS, meet, NULL);
    CHECK(serial == 20 && pthread_barrier_destroy(&barrier) == 0);
}

void test_pthreads(void) {
    threads_end_and_are_joined();
    there_are_so_many_threads();
    mutexes_exclude();
    conditions_wake();
    late_and_woken();
    once_and_keys();
    locks_and_barriers();
}
