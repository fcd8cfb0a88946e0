/* Limits say which, a call through no portal is an error, and what became of a call is not forgotten by printing. */
#include "check.h"

static int go;

static void wait_for_end(void *unused) {
    (void)unused;
    sem_wait(go);
}

static void files_end(void) {
    int fds[80], count = 0;
    while (count < 80 && (fds[count] = open("/ram/many", O_RDWR | O_CREAT)) >= 0)
        count++;
    CHECK(count < 80 && errno == EMFILE);
    SAME(strerror(errno), "Too many open files or portals");
    while (count > 0)
        close(fds[--count]);
    unlink("/ram/many");
}

static void threads_end(void) {
    int count = 0;
    go = sem_create(0);
    while (count < 80 && thread_create(wait_for_end, NULL) >= 0)
        count++;
    CHECK(count < 80 && errno == EAGAIN);
    SAME(strerror(errno), "Limit reached, try again later");
    while (count-- > 0)
        sem_post(go);
    msleep(50);
}

static void portals_end(void) {
    int first = portal_open("file.remove"), last = first, next;
    CHECK(first >= 0);
    while (last - first < 2000 && (next = portal_open("file.remove")) >= 0)
        last = next;
    CHECK(last - first < 2000 && errno == EMFILE);
    for (int index = first; index <= last; index++)
        portal_close(index);
}

void test_errors(void) {
    files_end();
    threads_end();
    portals_end();
    /* What a function returned that failed, called. */
    FAILS(invoke_portal(-1), EBADF);
    FAILS(invoke_portal(portal_open("no.such")), EBADF);
    long results[MAX_RESULTS];
    FAILS(invoke_portal_results(results, -1), EBADF);
    FAILS(invoke_portal_within(1000, -1), EBADF);
    FAILS(invoke_portal(1 << 20), EBADF);
    FAILS(sem_wait(-1), EBADF);
    FAILS(sem_post(-1), EBADF);
    CHECK(portal_status_code(portal_status()) == 0 || portal_status_code(portal_status()) == PORTAL_CLOSED);
    /* An interface that its exporter withdraws: the status outlives what is printed about it, and what succeeds besides. */
    invoke_portal(-1);
    unsigned long status = portal_status();
    CHECK(status != 0);
    FILE *file = fopen("/ram/printed", "w");
    fprintf(file, "%d\n", 1);
    fclose(file);
    unlink("/ram/printed");
    free(malloc(100000));
    CHECK(portal_status() == status);
    int remove = portal_open("file.remove");
    CHECK(invoke_portal(remove, 0) < 0 && portal_status() == 0);
    CHECK(strcmp(strerror(9999), "Error 9999") == 0 && strcmp(strerror(-3), "Error -3") == 0);
}
