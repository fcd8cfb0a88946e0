/* Threads of this domain, and semaphores. */
#include "internal.h"

#include <string.h>

void __thread_start(void);
void __fork_start(void);

static int start(void (*entry)(void), void *argument, int priority) {
    __alone = 0;
    int thread = (int)__checked(portal_call(SYS_THREAD_CREATE, entry, argument, priority));
    if (thread < 0)
        free(argument);
    return thread;
}

/* What a new thread shall do; the new thread frees it. */
struct task {
    void (*function)(void *);
    void *argument;
};

int thread_create_priority(void (*function)(void *), void *argument, int priority) {
    struct task *task = malloc(sizeof *task);
    if (task == NULL)
        return -1;
    *task = (struct task){function, argument};
    return start(__thread_start, task, priority);
}

int thread_create(void (*function)(void *), void *argument) {
    return thread_create_priority(function, argument, 0);
}

__attribute__((noreturn)) void __thread_main(struct task *record) {
    struct task task = *record;
    free(record);
    task.function(task.argument);
    thread_exit();
}

void thread_exit(void) {
    for (;;)
        portal_call(SYS_THREAD_EXIT);
}

void yield(void) { portal_call(SYS_YIELD); }

/* The part of a stack from fork's frame to the top, for the new thread to lay out on its own stack. */
struct image {
    unsigned long size;    /* portal.S reads this word */
    unsigned long low;     /* where the copy came from */
    unsigned long pointer; /* the thread pointer: it may lie beyond the block, and so beyond the copy */
    unsigned long words[];
};

/* What the new thread's stack keeps free below the copy: its guard page, and some to work with. */
#define ROOM 8192

int __fork(unsigned long *frame) {
    unsigned long low = (unsigned long)frame;
    /* The block lies at the top of this stack, however far that has grown. */
    unsigned long size = ((unsigned long)PEBBLE_BLOCK() | (STACK_SLOT - 1)) + 1 - low;
    if (size > STACK_SLOT - ROOM) {
        errno = ENOMEM;
        return -1;
    }
    struct image *image = malloc(sizeof *image + size);
    if (image == NULL)
        return -1;
    image->size = size;
    image->low = low;
    image->pointer = (unsigned long)PEBBLE_BLOCK() + PEBBLE_TP_OFFSET;
    memcpy(image->words, frame, size);
    return start(__fork_start, image, 0);
}

/* Runs in the new thread, without a thread-local block. A word that points into the old copy comes to point into
   the new one; so does a thread pointer that the compiler has kept. */
void __fork_copy(const struct image *image, unsigned long *to) {
    for (unsigned long i = 0; i < image->size / sizeof *to; i++) {
        unsigned long word = image->words[i];
        int moves = word - image->low < image->size || word == image->pointer;
        to[i] = moves ? word - image->low + (unsigned long)to : word;
    }
}

int sem_create(int value) { return (int)__checked(portal_call(SYS_SEM_CREATE, value)); }

/* P or V; to call what is no index, as that of a semaphore that could not be made, would be a fault. */
static int operate(int sem, int portal) {
    if (sem < 0 || portal >= NPORTALS) {
        errno = EBADF;
        return -1;
    }
    return __checked(portal_call(portal)) < 0 ? -1 : 0;
}

int sem_wait(int sem) { return operate(sem, sem); }

int sem_post(int sem) { return operate(sem, sem + 1); }

int sem_close(int sem) { return portal_close_many(sem, 2); }

int sem_publish(int sem, const char *name) {
    long n[3];
    if (!__pack(name, n, 3))
        return -1;
    return __checked(portal_call(SYS_SEM_PUBLISH, sem, n[0], n[1], n[2])) < 0 ? -1 : 0;
}

int sem_open(const char *name) {
    long n[3];
    if (!__pack(name, n, 3))
        return -1;
    return (int)__checked(portal_call(SYS_SEM_OPEN, n[0], n[1], n[2]));
}
