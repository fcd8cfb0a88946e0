/* Reads and writes at a place and of several pieces; which files are ready. */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/uio.h>

void open_pipe(int ends[2]) {
    static int make;
    char path[PATHLEN + 1];
    if (make == 0)
        make = portal_open("pipe.create");
    long token = invoke_portal(make);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/pipe/%016lx/%c", (unsigned long)token, "rw"[i]);
        ends[i] = open(path, i == 0 ? O_RDONLY : O_WRONLY);
        CHECK(ends[i] >= 0);
    }
}

enum { RECORDS = 64, RECORD = 100 };
static int file;

/* Each record has its number throughout. */
static bool is_record(const char *bytes, int number) {
    for (int i = 0; i < RECORD; i++)
        if (bytes[i] != (char)number)
            return false;
    return true;
}

static void *read_at_places(void *step) {
    char bytes[RECORD];
    for (int i = 0; i < 300; i++) {
        int number = i * (int)(long)step % RECORDS;
        CHECK(pread(file, bytes, RECORD, number * RECORD) == RECORD && is_record(bytes, number));
        if (i % 5 == 0)
            yield();
    }
    return NULL;
}

void test_places(void) {
    char bytes[RECORD];
    file = open("/ram/places", O_RDWR | O_CREAT | O_TRUNC);
    CHECK(file >= 0);
    for (int i = RECORDS - 1; i >= 0; i -= 2) /* with holes, which are filled later */
        CHECK(pwrite(file, memset(bytes, i, RECORD), RECORD, i * RECORD) == RECORD);
    CHECK(lseek(file, 0, SEEK_CUR) == 0 && lseek(file, 0, SEEK_END) == RECORDS * RECORD);
    CHECK(pread(file, bytes, RECORD, 0) == RECORD && is_record(bytes, 0));
    for (int i = 0; i < RECORDS; i += 2)
        CHECK(pwrite(file, memset(bytes, i, RECORD), RECORD, i * RECORD) == RECORD);
    /* Threads that read at places do not move the one that goes through the file. */
    lseek(file, 0, SEEK_SET);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, read_at_places, (void *)7);
    pthread_create(&threads[1], NULL, read_at_places, (void *)11);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < RECORDS; i++) {
            CHECK(read(file, bytes, RECORD) == RECORD && is_record(bytes, i));
            if (i % 3 == 0)
                yield();
        }
        CHECK(read(file, bytes, RECORD) == 0 && lseek(file, 0, SEEK_SET) == 0);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK(pread(file, bytes, RECORD, RECORDS * RECORD - 10) == 10 && pread(file, bytes, RECORD, RECORDS * RECORD) == 0);
    CHECK(pread(file, bytes, RECORD, 1L << 40) == 0);
    FAILS(pread(file, bytes, RECORD, -1), EINVAL);
    FAILS(pread(-1, bytes, 1, 0), EBADF);
    CHECK(pwrite(file, "end", 3, RECORDS * RECORD + 1000) == 3 && lseek(file, 0, SEEK_END) == RECORDS * RECORD + 1003);
    memset(bytes, 1, RECORD);
    CHECK(pread(file, bytes, RECORD, RECORDS * RECORD + 500) == RECORD && is_record(bytes, 0));
    close(file);
    file = open("/ram/places", O_RDONLY);
    FAILS(pwrite(file, "x", 1, 0), EBADF);
    close(file);
    unlink("/ram/places");

    int ends[2];
    char one[3] = {0}, two[1], three[20] = {0};
    open_pipe(ends);
    FAILS(pread(ends[0], bytes, 1, 0), ESPIPE);
    struct iovec out[] = {{"ab", 2}, {NULL, 0}, {"cdefg", 5}}, in[] = {{one, 2}, {two, 0}, {three, 20}};
    CHECK(writev(ends[1], out, 3) == 7 && readv(ends[0], in, 3) == 7);
    SAME(one, "ab");
    SAME(three, "cdefg");
    FAILS(readv(ends[0], in, 0), EINVAL);
    FAILS(writev(ends[1], out, 5000), EINVAL);
    in[0].iov_len = in[2].iov_len = SIZE_MAX / 2 + 1;
    FAILS(readv(ends[0], in, 3), EINVAL);
    close(ends[0]);
    close(ends[1]);
}

static void *write_late(void *fd) {
    msleep(20);
    write((int)(long)fd, "x", 1);
    return NULL;
}

void test_poll(void) {
    int ends[2], etc = open("/etc/supervisor", O_RDONLY), console = open("/dev/console", O_RDWR);
    char bytes[600];
    open_pipe(ends);
    struct pollfd all[] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}, {etc, POLLIN | POLLOUT, 0}, {-1, POLLIN, 9}, {4000, POLLIN, 0}};
    CHECK(poll(all, 5, -1) == 3 && all[0].revents == 0 && all[1].revents == POLLOUT && all[2].revents == POLLIN);
    CHECK(all[3].revents == 0 && all[4].revents == POLLNVAL);
    /* Nothing comes: its time, and no less. */
    long before = hrtime();
    CHECK(poll(all, 1, 30) == 0 && hrtime() - before >= 30L * TIME_HZ / 1000);
    before = hrtime();
    CHECK(poll(NULL, 0, 5) == 0 && hrtime() - before >= 5L * TIME_HZ / 1000);
    CHECK(poll(all, 1, 0) == 0);
    pthread_t writer;
    pthread_create(&writer, NULL, write_late, (void *)(long)ends[1]);
    CHECK(poll(all, 1, -1) == 1 && all[0].revents == POLLIN);
    pthread_join(writer, NULL);
    /* What is ready does not wait. */
    CHECK(read(ends[0], bytes, 10) == 1 && poll(all, 1, 0) == 0);
    memset(bytes, 'y', sizeof bytes);
    int written = 0;
    while (written < 100 && poll(all + 1, 1, 0) == 1)
        written += write(ends[1], bytes, 32) == 32;
    CHECK(written == 16 && all[1].revents == 0);
    /* The same in sets. */
    fd_set in, out;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    FD_SET(etc, &in);
    struct timeval none = {0, 0};
    CHECK(select(4096, &in, &out, NULL, &none) == 2 && FD_ISSET(ends[0], &in) && FD_ISSET(etc, &in) && !FD_ISSET(ends[1], &out));
    for (ssize_t got = 0, some; got < 512; got += some)
        if ((some = read(ends[0], bytes, 512)) <= 0)
            break;
    CHECK(select(ends[0] + 1, &in, NULL, NULL, &none) >= 0 && !FD_ISSET(ends[0], &in));
    FD_SET(4000, &in);
    FAILS(select(4096, &in, NULL, NULL, NULL), EBADF);
    FAILS(select(5000, &in, NULL, NULL, NULL), EINVAL);
    /* Nobody is there any more. */
    close(ends[1]);
    CHECK(poll(all, 1, -1) == 1 && all[0].revents == (POLLIN | POLLHUP) && read(ends[0], bytes, 1) == 0);
    close(ends[0]);
    open_pipe(ends);
    close(ends[0]);
    all[1].fd = ends[1];
    CHECK(poll(all + 1, 1, -1) == 1 && all[1].revents == (POLLOUT | POLLERR));
    close(ends[1]);
    /* Nobody types for who is in the background; one may write at any time. */
    struct pollfd typed = {console, POLLIN | POLLOUT, 0};
    CHECK(poll(&typed, 1, 1000) == 1 && typed.revents == POLLOUT);
    typed.events = POLLIN;
    CHECK(poll(&typed, 1, 5) == 0);
    close(console);
    close(etc);
}
