/*
 * A transparent sandbox: counts the portal calls of a child, and carries out each of them.
 *
 * The child times two threads that wake each other by turns. It is a copy of this program, all of whose portals lead to
 * intercept(); portals that are made for it later lead there too, since notify() puts a stub behind each.
 */
#include <pebble.h>

#define ROUNDS 1000

static int calls[NPORTALS];
static int child;
static int ping, pong, done;

/* Any portal of the child. */
int intercept(int index, int p1, int p2, int p3, int p4, int p5) {
    calls[index]++;
    return invoke_portal(index, p1, p2, p3, p4, p5);
}

/* A portal was made here, on behalf of the child: it gets the same, with the index in front of its words. */
void notify(int asid, int index, char *template) {
    char stub[NAMELEN];
    int n = 0;
    if (child <= 0)
        return;
    for (char *letter = template; *letter != 0; letter++) {
        stub[n++] = *letter;
        if (n == 2)
            stub[n++] = '=';
    }
    stub[n] = 0;
    portal_create_child(child, index, stub, 0, intercept);
}

/* Ticks for a round: each of two threads waits once and posts once. */
int measure(void) {
    ping = sem_create(0);
    pong = sem_create(0);
    done = sem_create(0);
    if (fork() == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            sem_wait(ping);
            sem_post(pong);
        }
        sem_post(done);
        thread_exit();
    }
    long start = hrtime();
    for (int i = 0; i < ROUNDS; i++) {
        sem_post(ping);
        sem_wait(pong);
    }
    long ticks = hrtime() - start;
    sem_wait(done);
    return (int)(ticks / (ROUNDS / 100));
}

void main(void) {
    int result = open("/dev/console", O_RDWR);
    char line[32];
    portal_notify(notify);
    child = domain_fork(intercept);
    if (child == 0) {
        int ticks = measure();
        int n = 0;
        for (int digit = 1000000; digit > 0; digit /= 10)
            if (ticks >= digit || digit == 1)
                line[n++] = '0' + ticks / digit % 10;
        line[n++] = '\n';
        write(result, "ticks for 100 rounds: ", 22);
        write(result, line, n);
        invoke_portal(SYS_EXIT, 0);
    }
    hrsleep(hrtime() + TIME_HZ);
    for (int i = 0; i < NPORTALS; i++)
        if (calls[i] > 0) {
            int n = 0, count = calls[i];
            for (int digit = 1000; digit > 0; digit /= 10)
                line[n++] = '0' + i / digit % 10;
            line[n++] = ' ';
            for (int digit = 1000000; digit > 0; digit /= 10)
                line[n++] = '0' + count / digit % 10;
            line[n++] = '\n';
            write(result, line, n);
        }
}
