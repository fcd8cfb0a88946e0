/* Files and memory as pages. */
#include "check.h"
#include <pthread.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
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

void open_pipe(int ends[2]);

/* What is written: pages that say where they begin, and somewhat more. */
enum { PAGES = 70, TAIL = 100, ALL = PAGES * PAGE_BYTES + TAIL };

static char *pages_of_heap(void) {
    char *pages = memalign(PAGE_BYTES, (PAGES + 1) * PAGE_BYTES);
    memset(pages, 0, (PAGES + 1) * PAGE_BYTES);
    return pages;
}

/* How it is written: by pages or bytes, all at once or in parts. */
struct writer {
    int end, flips;
    size_t part;
};

static void *writes(void *argument) {
    const struct writer *how = argument;
    char *pages = pages_of_heap();
    for (size_t done = 0; done < ALL;) {
        size_t part = ALL - done < how->part ? ALL - done : how->part;
        for (size_t i = 0; i < part; i += sizeof(long))
            *(long *)(void *)(pages + i) = (long)(done + i);
        ssize_t (*write_some)(int, void *, size_t) = how->flips ? write_flip : (ssize_t(*)(int, void *, size_t))write;
        CHECK(write_some(how->end, pages, part) == (ssize_t)part);
        done += part;
    }
    close(how->end);
    free(pages);
    return NULL;
}

/* All of it comes, in order, whoever of the two flips. */
static void flipped_through(int reader_flips, int writer_flips, size_t reads, size_t part) {
    int ends[2];
    pthread_t thread;
    open_pipe(ends);
    struct writer how = {ends[1], writer_flips, part};
    CHECK(pthread_create(&thread, NULL, writes, &how) == 0);
    char *pages = pages_of_heap();
    size_t done = 0, wrong = 0;
    ssize_t got;
    while ((got = reader_flips ? read_flip(ends[0], pages, reads) : read(ends[0], pages, reads)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            long word = (long)((done + (size_t)i) & ~(sizeof(long) - 1));
            wrong += pages[i] != ((char *)&word)[(done + (size_t)i) % sizeof(long)];
        }
        done += (size_t)got;
    }
    CHECK(got == 0 && done == ALL && wrong == 0);
    pthread_join(thread, NULL);
    close(ends[0]);
    free(pages);
}

static void flipped(void) {
    for (int how = 0; how < 4; how++)
        for (size_t part = PAGE_BYTES / 2; part <= PAGES * PAGE_BYTES; part = part * 7 / PAGE_BYTES * PAGE_BYTES) {
            flipped_through(how & 1, how >> 1, PAGES * PAGE_BYTES, part);
            flipped_through(how & 1, how >> 1, 3 * PAGE_BYTES, part);
        }
    char *pages = pages_of_heap();
    FAILS(read_flip(-1, pages, PAGE_BYTES), EBADF);
    FAILS(write_flip(-1, pages, PAGE_BYTES), EBADF);
    /* Files know nothing of it, nor do pages that are none. */
    int ram = open("/ram/flipped", O_RDWR | O_CREAT | O_TRUNC);
    CHECK(write_flip(ram, pages, 2 * PAGE_BYTES) == 2 * PAGE_BYTES && write_flip(ram, pages + 1, 5) == 5);
    CHECK(lseek(ram, 0, SEEK_SET) == 0 && read_flip(ram, pages, 3 * PAGE_BYTES) == 2 * PAGE_BYTES + 5);
    close(ram);
    unlink("/ram/flipped");
    int ends[2];
    open_pipe(ends);
    FAILS(write_flip(ends[0], pages, PAGE_BYTES), EBADF);
    FAILS(read_flip(ends[1], pages, PAGE_BYTES), EBADF);
    close(ends[0]);
    FAILS(write_flip(ends[1], pages, PAGE_BYTES), EPIPE);
    close(ends[1]);
    free(pages);
}

/* From the archive and from elsewhere, to a file. */
static void sent(void) {
    char *bytes = contents(LINES);
    size_t size = size_of(LINES);
    int out = open("/ram/sent", O_RDWR | O_CREAT | O_TRUNC), in = open(LINES, O_RDONLY);
    off_t at = 5;
    CHECK(sendfile(out, in, &at, 10) == 10 && at == 15 && lseek(in, 0, SEEK_CUR) == 0);
    CHECK(sendfile(out, in, &at, size) == (ssize_t)size - 15 && at == (off_t)size);
    CHECK(sendfile(out, in, &at, 1) == 0);
    char *copy = contents("/ram/sent");
    CHECK(memcmp(copy, bytes + 5, size - 5) == 0);
    free(copy);
    CHECK(ftruncate(out, 0) == 0 && lseek(out, 0, SEEK_SET) == 0 && lseek(in, 3, SEEK_SET) == 3);
    CHECK(sendfile(out, in, NULL, size) == (ssize_t)size - 3 && lseek(in, 0, SEEK_CUR) == (off_t)size);
    int other = open("/ram/sent-on", O_RDWR | O_CREAT | O_TRUNC);
    CHECK(lseek(out, 1, SEEK_SET) == 1 && sendfile(other, out, NULL, size) == (ssize_t)size - 4);
    copy = contents("/ram/sent-on");
    CHECK(memcmp(copy, bytes + 4, size - 4) == 0);
    free(copy);
    FAILS(sendfile(in, out, NULL, 1), EBADF);
    FAILS(sendfile(out, 1, NULL, 1), EINVAL);
    FAILS(sendfile(-1, in, NULL, 1), EBADF);
    close(in), close(out), close(other);
    unlink("/ram/sent"), unlink("/ram/sent-on");
    free(bytes);
}

void test_pages(void) {
    together();
    flipped();
    sent();
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
