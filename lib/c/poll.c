/*
 * poll and select.
 *
 * Files never make anybody wait. The console and pipes say at once whether a call would (SEEK_READY). A thread can be woken by one
 * server at a time, so who waits for several looks again: after a millisecond at first, and every ten in the end. In between it
 * sleeps, and uses nothing of the processor.
 */
#include "descriptor.h"

#include <limits.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>

enum { TICK = TIME_HZ / 1000, LONGEST = 10 * TICK };

static int fail(int error) {
    errno = error;
    return -1;
}

/* What there is of it now, of what is asked for; errors unasked. */
static short look(const struct pollfd *file) {
    int use, portal = __descriptor(file->fd, &use);
    if (portal < 0)
        return POLLNVAL;
    long ready = READY_READ | READY_WRITE;
    if (use & STREAM && (ready = __checked(REPEATED(portal_call(portal + FILE_SEEK, 0L, (long)SEEK_READY)))) < 0)
        return POLLERR;
    int events = 0;
    if (ready & READY_READ && use & READS)
        events |= POLLIN | POLLRDNORM;
    if (ready & READY_WRITE && use & WRITES)
        events |= POLLOUT | POLLWRNORM;
    events &= file->events;
    if (ready & READY_END)
        events |= ready & READY_WRITE ? POLLERR : POLLHUP;
    return (short)events;
}

static int look_at_all(struct pollfd *files, nfds_t count) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        files[i].revents = files[i].fd < 0 ? 0 : look(&files[i]);
        ready += files[i].revents != 0;
    }
    return ready;
}

/* At most until this time, in ticks. */
static int poll_until(struct pollfd *files, nfds_t count, long until) {
    for (long pause = TICK;; pause = pause < LONGEST / 2 ? 2 * pause : LONGEST) {
        int ready = look_at_all(files, count);
        long now = hrtime();
        if (ready > 0 || now >= until)
            return ready;
        if (hrsleep(until - now < pause ? until : now + pause) < 0)
            return -1;
    }
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
    if (count > NPORTALS)
        return fail(EINVAL);
    return poll_until(files, count, timeout < 0 ? LONG_MAX : hrtime() + timeout * (long)TICK);
}

static void keep(fd_set *set, int fd, int ready, int *all) {
    if (set == NULL || !FD_ISSET(fd, set))
        return;
    if (ready)
        ++*all;
    else
        FD_CLR(fd, set);
}

/* Nothing is ever exceptional. */
int select(int count, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout) {
    if (count < 0 || count > FD_SETSIZE || (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
        return fail(EINVAL);
    struct pollfd *files = malloc((size_t)(count + 1) * sizeof *files);
    if (files == NULL)
        return -1;
    nfds_t asked = 0;
    for (int fd = 0; fd < count; fd++) {
        int in = reads != NULL && FD_ISSET(fd, reads), out = writes != NULL && FD_ISSET(fd, writes);
        if (in || out)
            files[asked++] = (struct pollfd){fd, (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0)), 0};
    }
    long until = LONG_MAX, most = LONG_MAX / (long)TIME_HZ / 2;
    if (timeout != NULL && timeout->tv_sec < most)
        until = hrtime() + timeout->tv_sec * (long)TIME_HZ + timeout->tv_usec * (TIME_HZ / 1000000L);
    int all = poll_until(files, asked, until) < 0 ? -1 : 0;
    for (nfds_t i = 0; i < asked && all >= 0; i++) {
        int fd = files[i].fd, events = files[i].revents;
        if (events & POLLNVAL) {
            all = fail(EBADF);
            break;
        }
        keep(reads, fd, events & (POLLIN | POLLHUP | POLLERR), &all);
        keep(writes, fd, events & (POLLOUT | POLLERR), &all);
    }
    if (excepts != NULL && all >= 0)
        FD_ZERO(excepts);
    free(files);
    return all;
}
