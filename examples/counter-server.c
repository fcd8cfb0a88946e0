/*
 * A server: one number that any domain may add to.
 *
 * "counter.add" is called with the specification npai: on a stack of ours (n), the caller's registers saved by the
 * portal (p); the portal supplies who calls (a), the caller the amount (i).
 */
#include <pebble.h>
#include <stdio.h>

static long total;

static long add(long caller, long amount) {
    if (amount < 0)
        return -EINVAL;
    long now = __atomic_add_fetch(&total, amount, __ATOMIC_RELAXED);
    printf("counter: domain %ld adds %ld: %ld\n", caller, amount, now);
    fflush(stdout);
    return now;
}

int main(void) {
    if (portal_register("counter.add", "npai", add) < 0) {
        portal_perror("counter.add");
        return 1;
    }
    /* The interface lives as long as its domain: this thread has nothing more to do. */
    thread_exit();
}
