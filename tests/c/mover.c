/* Calls servers without pause while they are replaced, for as many seconds as it is told: "mover: N calls, M failed" at the end. */
#include <fcntl.h>
#include <pebble.h>
#include <stdio.h>
#include <string.h>

#define SIZE 1000

static long calls, failed;

static void check(const char *what, int good) {
    calls++;
    if (!good && failed++ < 5)
        printf("FAILED %s: errno %d, status %#lx\n", what, errno, portal_status());
}

/* The file is the same each time. */
static void read_file(void) {
    static char first[SIZE], now[SIZE];
    int fd = open("/share/lines", O_RDONLY);
    check("open", fd >= 0);
    size_t got = 0;
    ssize_t count;
    while (got < SIZE && (count = read(fd, now + got, SIZE - got)) > 0)
        got += (size_t)count;
    if (first[0] == 0)
        memcpy(first, now, SIZE);
    check("read", got == SIZE && memcmp(first, now, SIZE) == 0);
    check("seek", lseek(fd, 10, SEEK_SET) == 10);
    check("close", close(fd) == 0);
}

int main(int argc, char **argv) {
    long until = hrtime() + (argc > 1 ? atol(argv[1]) : 1) * TIME_HZ;
    int clock = portal_open("clock.nanoseconds"), list = portal_open("name.list");
    long before = 0;
    while (hrtime() < until) {
        long now = invoke_portal(clock), words[MAX_RESULTS];
        check("clock", now > before);
        before = now;
        check("names", invoke_portal_results(words, list, 0) >= 0 && words[0] != 0);
        check("within", invoke_portal_within(10 * TIME_HZ, clock) > before);
        read_file();
    }
    printf("mover: %ld calls, %ld failed\n", calls, failed);
    return failed != 0;
}
