/* WebAssembly has no signals: sets of them are empty and nothing is masked. */
#ifndef PEBBLE_BENCH_SIGNAL_H
#define PEBBLE_BENCH_SIGNAL_H

#include_next <signal.h>

typedef int sigset_t;

static inline int sigfillset(sigset_t *set) { return *set = 0; }
static inline int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    (void)how, (void)set, (void)old;
    return 0;
}

#endif
