/*
 * A transparent sandbox: counts the portal calls of a child, and carries out each of them.
 *
 * The child times two threads that wake each other by turns. It is a copy of this program, all of whose portals lead to
 * intercept(); portals that are made for it later lead there too, since notify() puts a stub behind each. The program is
 * written against the papers' interface alone: pebble.h, and int for every word.
 */
#include <pebble.h>

#define ROUNDS 1000

int calls[NPORTALS];
int child;
int ping, pong, done;

/* Any portal of the child. */
int intercept(int index, int p1, int p2, int p3, int p4, int p5) {
    calls[index]++;
    return invoke_portal(index, p1, p2, p3, p4, p5);
}

/* A portal was made here, on behalf of the child: it gets the same, with the index in front of its words. */
void notify(int asid, int index, char *template) {
    char stub[NAMELEN];
    if (child <= 0 || strlen(template) < 2)
        return;
    stub[0] = template[0];
    stub[1] = template[1];
    stub[2] = '=';
    strcpy(stub + 3, template + 2);
    portal_create_child(child, index, stub, 0, intercept);
}

/* Ticks for so many rounds: each of two threads waits once and posts once. */
int measure(void) {
    int i, start, ticks;
    ping = sem_create(0);
    pong = sem_create(0);
    done = sem_create(0);
    if (fork() == 0) {
        for (i = 0; i < ROUNDS; i++) {
            sem_wait(ping);
            sem_post(pong);
        }
        sem_post(done);
        thread_exit();
    }
    start = hrtime();
    for (i = 0; i < ROUNDS; i++) {
        sem_post(ping);
        sem_wait(pong);
    }
    ticks = hrtime() - start;
    sem_wait(done);
    return ticks;
}

void main(void) {
    int i;
    portal_notify(notify);
    child = domain_fork(intercept);
    if (child == 0) {
        printf("%d ticks for %d rounds\n", measure(), ROUNDS);
        invoke_portal(SYS_EXIT, 0);
    }
    hrsleep(hrtime() + TIME_HZ);
    for (i = 0; i < NPORTALS; i++)
        if (calls[i] > 0)
            printf("portal %d: %d calls\n", i, calls[i]);
}
