/* POSIX semaphores, in a file without pebble.h, which has others of these names. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

void checked(bool holds, const char *file, int line, const char *what);
void test_semaphores(void);
#define CHECK(condition) checked(condition, __FILE_NAME__, __LINE__, #condition)

enum { ROUNDS = 300 };
static sem_t there, back;

static void *answer(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&there);
        sem_post(&back);
    }
    return unused;
}

void test_semaphores(void) {
    pthread_t thread;
    int value;
    CHECK(sem_init(&there, 0, 0) == 0 && sem_init(&back, 0, 0) == 0);
    CHECK(sem_init(&back, 1, 0) < 0 && errno == ENOSYS);
    CHECK(sem_trywait(&there) < 0 && errno == EAGAIN);
    CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++)
        CHECK(sem_post(&there) == 0 && sem_wait(&back) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && sem_getvalue(&back, &value) == 0 && value == 0);
    struct timespec past = {1, 0}, never = {1, -1};
    CHECK(sem_timedwait(&back, &past) < 0 && errno == ETIMEDOUT);
    CHECK(sem_timedwait(&back, &never) < 0 && errno == EINVAL);
    CHECK(sem_post(&back) == 0 && sem_timedwait(&back, &never) == 0); /* there is nothing to wait for */
    CHECK(sem_init(&back, 0, SEM_VALUE_MAX) == 0 && sem_post(&back) < 0 && errno == EOVERFLOW);
    CHECK(sem_init(&back, 0, SEM_VALUE_MAX + 1u) < 0 && errno == EINVAL && sem_destroy(&there) == 0);
}
