/* Files and memory as pages. */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LINES "/share/lines"

static char *map(const char *path, int protection, int flags, size_t size, off_t offset) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    char *start = mmap(NULL, size, protection, flags, fd, offset);
    int error = errno;
    close(fd);
    errno = error;
    return start;
}

static size_t size_of(const char *path) {
    struct stat about;
    CHECK(stat(path, &about) == 0);
    return (size_t)about.st_size;
}

/* What a file has, as it is read. */
static char *contents(const char *path) {
    size_t size = size_of(path);
    char *bytes = malloc(size);
    int fd = open(path, O_RDONLY);
    CHECK(read(fd, bytes, size) == (ssize_t)size);
    close(fd);
    return bytes;
}

static size_t whole(size_t size) { return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; }

/* The archive's own pages, which several have. */
static void shown(void) {
    size_t size = size_of(LINES);
    char *bytes = contents(LINES), *first = map(LINES, PROT_READ, MAP_SHARED, size, 0);
    CHECK(size % PAGE_BYTES != 0 && size > 5 * PAGE_BYTES);
    CHECK(first != MAP_FAILED && memcmp(first, bytes, size) == 0);
    for (size_t i = size; i < whole(size); i++)
        CHECK(first[i] == 0);
    char *second = map(LINES, PROT_READ, MAP_PRIVATE, 2 * PAGE_BYTES, PAGE_BYTES);
    CHECK(second != MAP_FAILED && memcmp(second, bytes + PAGE_BYTES, 2 * PAGE_BYTES) == 0);
    /* What one no longer wants, the other still has. */
    CHECK(munmap(first, size) == 0 && memcmp(second, bytes + PAGE_BYTES, 2 * PAGE_BYTES) == 0);
    FAILS(munmap(first, size), EINVAL);
    FAILS(munmap(second, PAGE_BYTES), EINVAL);
    FAILS(munmap(second + PAGE_BYTES, PAGE_BYTES), EINVAL);
    /* They can be written from, by windows and in registers. */
    int ram = open("/ram/shown", O_RDWR | O_CREAT | O_TRUNC);
    CHECK(write(ram, second, 2 * PAGE_BYTES) == 2 * PAGE_BYTES && write(ram, second + 1, 30) == 30);
    close(ram);
    char *copy = contents("/ram/shown");
    CHECK(memcmp(copy, second, 2 * PAGE_BYTES) == 0 && memcmp(copy + 2 * PAGE_BYTES, second + 1, 30) == 0);
    CHECK(munmap(second, 2 * PAGE_BYTES) == 0);
    free(copy);
    /* Behind its end is nothing, however much is asked for. */
    first = map(LINES, PROT_READ, MAP_SHARED, size + 100 * PAGE_BYTES, 0);
    CHECK(first != MAP_FAILED && memcmp(first, bytes, size) == 0 && munmap(first, size + 100 * PAGE_BYTES) == 0);
    CHECK(map(LINES, PROT_READ, MAP_SHARED, 1, (off_t)whole(size)) == MAP_FAILED && errno == ENODEV);
    free(bytes);
}

/* Copies of files, and zeros. */
static void copied(void) {
    size_t size = size_of(LINES);
    char *bytes = contents(LINES), *own = map(LINES, PROT_READ | PROT_WRITE, MAP_PRIVATE, size, 0);
    CHECK(own != MAP_FAILED && memcmp(own, bytes, size) == 0);
    memset(own, 'x', size);
    char *other = map(LINES, PROT_READ, MAP_PRIVATE, size, 0);
    CHECK(memcmp(other, bytes, size) == 0 && munmap(own, size) == 0 && munmap(other, size) == 0);
    free(bytes);

    put("/ram/pages", O_RDWR | O_CREAT | O_TRUNC, "not the archive's");
    CHECK(map("/ram/pages", PROT_READ, MAP_SHARED, 10, 0) == MAP_FAILED && errno == ENODEV);
    own = map("/ram/pages", PROT_READ, MAP_PRIVATE, 10, 0);
    SAME(own, "not the archive's");
    CHECK(munmap(own, PAGE_BYTES) == 0);
    int fd = open("/ram/pages", O_WRONLY);
    CHECK(mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EACCES);
    close(fd);

    char *zeros = mmap(NULL, 3 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(zeros != MAP_FAILED && (unsigned long)zeros % PAGE_BYTES == 0);
    for (int i = 0; i < 3 * PAGE_BYTES; i++)
        CHECK(zeros[i] == 0);
    memset(zeros, 1, 3 * PAGE_BYTES);
    CHECK(munmap(zeros, 3 * PAGE_BYTES) == 0);
}

static void refused(void) {
    static const struct {
        size_t size;
        int protection, flags, fd;
        off_t offset;
        int error;
    } wrong[] = {
        {0, PROT_READ, MAP_PRIVATE, 0, 0, EINVAL},
        {1, PROT_READ, MAP_PRIVATE, 0, 1, EINVAL},
        {1, PROT_READ, MAP_PRIVATE, 0, -PAGE_BYTES, EINVAL},
        {1, PROT_READ, 0, 0, 0, EINVAL},
        {1, PROT_READ, MAP_PRIVATE | MAP_SHARED, 0, 0, EINVAL},
        {1, PROT_READ, MAP_PRIVATE | 0x8000, 0, 0, EINVAL},
        {1, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0, 0, EACCES},
        {1, PROT_READ, MAP_PRIVATE | MAP_FIXED, 0, 0, ENOTSUP},
        {1, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0, ENOTSUP},
        {1, PROT_READ, MAP_PRIVATE, -1, 0, EBADF},
        {1, PROT_READ, MAP_PRIVATE, 0, 0, ENODEV}, /* the console */
        {(size_t)-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, ENOMEM},
        {1ul << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, ENOMEM},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        void *start = mmap(NULL, wrong[i].size, wrong[i].protection, wrong[i].flags, wrong[i].fd, wrong[i].offset);
        CHECK(start == MAP_FAILED && errno == wrong[i].error);
    }
    FAILS(munmap(NULL, 1), EINVAL);
    FAILS(munmap((void *)PAGE_BYTES, PAGE_BYTES), EINVAL);
}

/* Two threads have the same pages and give them up, over and over: neither takes them from the other. */
static void *map_and_unmap(void *bytes) {
    size_t size = size_of(LINES);
    for (int round = 0; round < 100; round++) {
        char *start = map(LINES, PROT_READ, MAP_SHARED, size, 0);
        yield();
        CHECK(start != MAP_FAILED && memcmp(start, bytes, size) == 0 && munmap(start, size) == 0);
    }
    return NULL;
}

static void together(void) {
    char *bytes = contents(LINES);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, map_and_unmap, bytes) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(bytes);
}

void test_pages(void) {
    together();
    for (int round = 0; round < 3; round++) {
        shown();
        copied();
        refused();
    }
}

/* Ends by a fault: writes to the archive, reads behind a file, or what is mapped no more. */
int trespass(const char *how) {
    size_t size = size_of(LINES);
    volatile char *start = map(LINES, PROT_READ, MAP_SHARED, size, 0);
    if (strcmp(how, "write") == 0)
        start[size - 1] = 'x';
    if (strcmp(how, "behind") == 0)
        return start[whole(size)];
    if (strcmp(how, "ended") == 0) {
        munmap((void *)start, size);
        return start[0];
    }
    return 0;
}
