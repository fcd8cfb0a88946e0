/* Waiting for a word to change: see waiting.c. Without pebble.h, whose semaphores have the names of semaphore.h. */
#ifndef WAITING_H
#define WAITING_H

#include <limits.h>
#include <time.h>

#define FOREVER LONG_MAX

/* Waits as long as the word has this value and nobody wakes the thread, at most until this time in ticks: 0, or ETIMEDOUT. It may also be
   woken for nothing: the caller looks again. */
int __wait_while(const int *word, int value, long until);
/* Wakes so many of those that wait for the word, the first to come first. Only the word's address matters. */
void __wake(const int *word, int most);
/* A time of that clock in ticks; 0: it is past; -1: it is none. */
long __deadline(const struct timespec *time, clockid_t clock);
/* Whether that clock says so, too: the real one goes at its own pace. */
int __is_late(const struct timespec *time, clockid_t clock);

#endif
