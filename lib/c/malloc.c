/* malloc and its kin: the heap of lib/c/malloc, one thread at a time. */
#include "internal.h"

#include <malloc.h>
#include <string.h>
#include <sys/lock.h>

void *__heap_malloc(size_t size);
void *__heap_calloc(size_t size);
void *__heap_memalign(size_t align, size_t size);
void *__heap_realloc(void *block, size_t size);
void __heap_free(void *block);
size_t __heap_size(const void *block);

static struct __lock lock;

#define LOCKED(type, call)                                                                                       \
    __extension__({                                                                                              \
        __retarget_lock_acquire(&lock);                                                                          \
        type result_ = (call);                                                                                   \
        __retarget_lock_release(&lock);                                                                          \
        result_;                                                                                                 \
    })

static void *found(void *block) {
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

/* A block that is given back or changed is in use: else the program ends here, where the mistake is, and not in somebody else's data. */
static void check(const void *block, const char *who) {
    static const char complaint[] = ": not a block of malloc's, or freed already\n";
    if (__heap_size(block) > 0)
        return;
    __retarget_lock_release(&lock);
    write(2, who, strlen(who));
    write(2, complaint, sizeof complaint - 1);
    abort();
}

void *malloc(size_t size) { return found(LOCKED(void *, __heap_malloc(size))); }

void free(void *block) {
    if (block == NULL)
        return;
    __retarget_lock_acquire(&lock);
    check(block, "free");
    __heap_free(block);
    __retarget_lock_release(&lock);
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    return found(__builtin_mul_overflow(count, size, &bytes) ? NULL : LOCKED(void *, __heap_calloc(bytes)));
}

void *realloc(void *block, size_t size) {
    if (block == NULL)
        return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    return found(LOCKED(void *, (check(block, "realloc"), __heap_realloc(block, size))));
}

void *memalign(size_t align, size_t size) {
    if (align == 0 || (align & (align - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    return found(LOCKED(void *, __heap_memalign(align, size)));
}

void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

int posix_memalign(void **block, size_t align, size_t size) {
    int error = errno;
    void *aligned = align % sizeof(void *) != 0 ? NULL : memalign(align, size);
    if (aligned != NULL)
        *block = aligned;
    errno = error;
    return aligned != NULL ? 0 : align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0 ? EINVAL : ENOMEM;
}

size_t malloc_usable_size(void *block) { return block == NULL ? 0 : LOCKED(size_t, __heap_size(block)); }
