/* Corners of C that existing programs look into: says the same natively and confined. corners DIRECTORY, in which it finds and makes nothing but links. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <immintrin.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void paths(const char *directory) {
    static const char *const names[] = {"file", "to-file", "to-sub", "sub/back", "out", "loop", "nowhere", "none", "file/below", ".", "sub/../to-sub/."};
    char text[PATH_MAX], path[PATH_MAX];
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        ssize_t length = readlink(names[i], text, sizeof text - 1);
        if (length < 0)
            printf("%s: %s", names[i], errno == EINVAL ? "no link" : errno == ENOENT || errno == ENOTDIR ? "not there" : strerror(errno));
        else
            printf("%s: %.*s (%zd)", names[i], (int)length, text, readlink(names[i], text, 2));
        char *real = realpath(names[i], NULL);
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        char *whole = realpath(path, text);
        /* Whoever is confined does not come out. */
        int out = !strcmp(names[i], "out");
        printf(" -> %s, %s\n", real && !out ? strstr(real, "/corners") : "-", whole && !out ? strstr(whole, "/corners") : "-");
        free(real);
    }
    struct dirent **entries;
    int count = scandir(".", &entries, NULL, alphasort);
    for (int i = 0; i < count; i++)
        printf("%s%s", entries[i]->d_name, i + 1 < count ? " " : "\n");
}

/* Whether it has slept until then, or was too late to. */
static void until(clockid_t clock, long ns) {
    struct timespec then, now;
    clock_gettime(clock, &then);
    then.tv_nsec += ns;
    if (then.tv_nsec < 0)
        then.tv_nsec += 1000000000, then.tv_sec--;
    then.tv_sec += then.tv_nsec / 1000000000, then.tv_nsec %= 1000000000;
    int failed = clock_nanosleep(clock, TIMER_ABSTIME, &then, NULL);
    clock_gettime(clock, &now);
    int before = now.tv_sec < then.tv_sec || (now.tv_sec == then.tv_sec && now.tv_nsec < then.tv_nsec);
    then.tv_nsec = 1000000000;
    printf("slept: %d, awake too early: %d, no such time: %d\n", failed, before, clock_nanosleep(clock, TIMER_ABSTIME, &then, NULL) == EINVAL);
}

static sigjmp_buf place;
static void leap(int n) {
    if (n)
        leap(n - 1);
    siglongjmp(place, n + 5);
}
static void leaps(void) {
    static int masks[] = {0, 1};
    for (unsigned i = 0; i < 2; i++) {
        volatile int times = 0;
        int value = sigsetjmp(place, masks[i]);
        if (++times < 4)
            leap(times);
        printf("leaps: %d, %d\n", times, value);
    }
}

extern int absent(int) __attribute__((weak));
extern int absent_number __attribute__((weak));
extern const char *absent_texts[] __attribute__((weak));
__attribute__((weak)) int present(int x) { return x + 1; }
static int (*volatile table[])(int) = {absent, present};
static void weak(void) {
    printf("weak: %d %d %d", absent != NULL, &absent_number != NULL, absent_texts != NULL);
    for (unsigned i = 0; i < 2; i++) printf(" %d", table[i] ? table[i](1) : -1);
    printf(" %d\n", absent ? absent(1) : -1);
}

typedef __int128 wide;
static void say(const char *what, wide x) { printf("%s: %llx %llx\n", what, (unsigned long long)(x >> 64), (unsigned long long)x); }
static void atomics(void) {
    static wide number = 7, plain;
    static _Atomic wide counted;
    wide big = (wide)0x123456789abcdef << 64 | 0xfedcba987654321, expected = 7;
    say("was", __atomic_exchange_n(&number, big, __ATOMIC_SEQ_CST));
    say("add", __atomic_fetch_add(&number, (wide)1 << 63, __ATOMIC_SEQ_CST));
    say("or", __atomic_or_fetch(&number, 0xff, __ATOMIC_RELAXED));
    int same = __atomic_compare_exchange_n(&number, &expected, 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    say(same ? "same" : "other", expected);
    same = __atomic_compare_exchange_n(&number, &expected, 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    say(same ? "same" : "other", number);
    say("swapped", __sync_val_compare_and_swap(&plain, 0, big));
    counted += big, counted ^= 1, counted++;
    say("counted", counted);
    printf("again: %d\n", __sync_bool_compare_and_swap(&plain, 0, 1));
    struct { long a[3]; } three = {{1, 2, 3}}, other = {{4, 5, 6}}, old;
    __atomic_exchange(&three, &other, &old, __ATOMIC_SEQ_CST);
    printf("three: %ld %ld\n", three.a[2], old.a[2]);
}

__attribute__((target("avx2"))) static int sum_wide(const int *p) {
    __m256i x = _mm256_loadu_si256((const void *)p);
    x = _mm256_hadd_epi32(x, x), x = _mm256_hadd_epi32(x, x);
    return _mm256_extract_epi32(x, 0) + _mm256_extract_epi32(x, 4);
}
static int sum_plain(const int *p) {
    int sum = 0;
    for (int i = 0; i < 8; i++) sum += p[i];
    return sum;
}
static void processor(void) {
    unsigned low, high;
    static const int numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    __builtin_cpu_init();
    printf("kept: %u; sse2 %d, sse4.2 %d, avx2 %d, bmi2 %d, popcnt %d, intel %d, amd %d\n", low & 7, !!__builtin_cpu_supports("sse2"),
           !!__builtin_cpu_supports("sse4.2"), !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("bmi2"), !!__builtin_cpu_supports("popcnt"),
           !!__builtin_cpu_is("intel"), !!__builtin_cpu_is("amd"));
    printf("sum: %d\n", __builtin_cpu_supports("avx2") ? sum_wide(numbers) : sum_plain(numbers));
}

/* A list of nothing, which programs sleep with, and of what is not there. */
static void polls(void) {
    struct timespec before, after;
    struct pollfd files[] = {{.fd = -1, .events = POLLIN}, {.fd = 77, .events = POLLIN}};
    clock_gettime(CLOCK_MONOTONIC, &before);
    int none = poll(NULL, 0, 20);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("polled: %d, too early: %d; ", none, ms < 19);
    int ready = poll(files, 2, -1);
    printf("not there: %d, %d %d\n", ready, files[0].revents, files[1].revents == POLLNVAL);
}

int main(int argc, char **argv) {
    polls();
    paths(argc > 1 ? argv[1] : ".");
    until(CLOCK_MONOTONIC, 2000000), until(CLOCK_REALTIME, 2000000), until(CLOCK_MONOTONIC, -2000000);
    leaps();
    weak();
    atomics();
    processor();
    return 0;
}
