/* malloc and its kin, by several threads at once; and what they cost. */
#include "check.h"
#include <malloc.h>
#include <unistd.h>

#define BLOCKS 40000
#define PAGE 4096L
#define MEGABYTES 4L

static int done;

/* memcpy and memmove at every place in a word, over themselves too. */
static void moves(void) {
    enum { SIZE = 160 };
    unsigned char bytes[SIZE], wanted[SIZE];
    bool same = true;
    for (int from = 24; from < 40; from++)
        for (int to = 1; to < 70; to++)
            for (int size = 0; size < 90; size++) {
                for (int n = 0; n < SIZE; n++)
                    bytes[n] = wanted[n] = (unsigned char)(n * 7 + from);
                for (int n = 0; n < size; n++)
                    wanted[to + n] = (unsigned char)((from + n) * 7 + from);
                bool apart = from + size <= to || to + size <= from;
                void *result = (apart ? memcpy : memmove)(bytes + to, bytes + from, (size_t)size);
                same = same && result == bytes + to && memcmp(bytes, wanted, SIZE) == 0;
            }
    CHECK(same);
}

/* As many sizes as there are rounds, kept for a while, and looked at before they go. */
static void churn(void *argument) {
    enum { KEPT = 50 };
    static const size_t sizes[] = {1, 24, 100, 513, 4000, 20000};
    unsigned char *kept[KEPT] = {0}, mark = (unsigned char)(long)argument;
    size_t held[KEPT] = {0};
    bool sound = true;
    for (unsigned round = 0; round < 3000; round++) {
        unsigned n = round * 7 % KEPT;
        size_t size = sizes[round % 6] + n;
        if (kept[n] != NULL)
            sound = sound && kept[n][0] == mark && kept[n][held[n] - 1] == mark;
        if (round % 3 == 0) {
            kept[n] = realloc(kept[n], size);
        } else {
            free(kept[n]);
            kept[n] = round % 3 == 1 ? malloc(size) : memalign(64, size);
        }
        held[n] = size;
        if (kept[n] == NULL)
            break;
        memset(kept[n], mark, size);
        if (round % 16 == 0)
            yield();
    }
    for (unsigned n = 0; n < KEPT; n++)
        free(kept[n]);
    CHECK(sound);
    sem_post(done);
}

void test_memory(void) {
    moves();
    done = sem_create(0);
    for (long n = 1; n <= 4; n++)
        CHECK(thread_create(churn, (void *)n) >= 0);
    for (int n = 0; n < 4; n++)
        sem_wait(done);
    void *aligned = NULL;
    CHECK(posix_memalign(&aligned, 4096, 10) == 0 && (unsigned long)aligned % 4096 == 0);
    CHECK(malloc_usable_size(aligned) >= 10 && malloc_usable_size(NULL) == 0);
    free(aligned);
    CHECK(posix_memalign(&aligned, 24, 10) == EINVAL && posix_memalign(&aligned, 3, 10) == EINVAL);
    CHECK(posix_memalign(&aligned, 16, 1L << 40) == ENOMEM);
    /* The compiler believes that there is memory, if it may look. */
    void *(*volatile get)(size_t) = malloc, *(*volatile clear)(size_t, size_t) = calloc;
    errno = 0;
    CHECK(get(1L << 40) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(clear(1L << 33, 1L << 33) == NULL && errno == ENOMEM);
    volatile size_t odd = 48;
    CHECK(memalign(odd, 10) == NULL && errno == EINVAL);
    char *zeros = calloc(1000, 10);
    for (int i = 0; i < 10000; i++)
        if (zeros[i] != 0)
            CHECK(zeros[i] == 0);
    CHECK((zeros = realloc(zeros, 100000)) != NULL && realloc(zeros, 0) == NULL);
    /* All that there is, and all of it again. */
    long most[2];
    for (int round = 0; round < 2; round++) {
        void *list = NULL, **block;
        for (most[round] = 0; (block = get(50000)) != NULL; most[round]++) {
            *block = list;
            list = block;
        }
        CHECK(errno == ENOMEM && most[round] > 200);
        while ((block = list) != NULL) {
            list = *block;
            free(block);
        }
    }
    CHECK(most[1] >= most[0]);
}

/* When the clock counts instructions, each takes a nanosecond. */
static void report(const char *what, long start, long count) {
    char text[80];
    snprintf(text, sizeof text, "%s %ld instructions\n", what, (hrtime() - start) * (1000000000 / TIME_HZ) / count);
    say(text);
}

/* Every second one of many, then the rest. */
void cost_of_memory(void) {
    static char *blocks[BLOCKS];
    long start = hrtime();
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(40 + i % 7 * 16);
    report("malloc", start, BLOCKS);
    start = hrtime();
    for (int i = 0; i < BLOCKS; i += 2)
        free(blocks[i]);
    report("free-every-second", start, BLOCKS / 2);
    start = hrtime();
    for (int i = 1; i < BLOCKS; i += 2)
        free(blocks[i]);
    report("free-the-rest", start, BLOCKS / 2);
}

/* One block, a page at a time, in a program that has no other; and again: the second time its pages are there. */
void cost_of_growth(void) {
    const char *const names[] = {"grow-fresh", "grow"};
    for (int round = 0; round < 2; round++) {
        char *block = NULL;
        long start = hrtime();
        for (long size = PAGE; size <= MEGABYTES << 20; size += PAGE)
            block = realloc(block, (size_t)size);
        report(names[round], start, (MEGABYTES << 20) / PAGE);
        CHECK(block != NULL);
        free(block);
    }
}

/* What a program gets is zero, whoever had it before. This one leaves it otherwise. */
void test_fresh(void) {
    enum { WORDS = 12 << 20 >> 3 };
    long *words = sbrk(WORDS * sizeof *words), others = 0;
    CHECK(words != (void *)-1);
    for (long i = 0; i < WORDS && words != (void *)-1; i++) {
        others += words[i] != 0;
        words[i] = ~i;
    }
    CHECK(others == 0);
}
