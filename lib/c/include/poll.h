/* Which of several files can be read or written without waiting. */
#ifndef PEBBLE_POLL_H
#define PEBBLE_POLL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned int nfds_t;

struct pollfd {
    int fd; /* below 0: left out */
    short events, revents;
};

#define POLLIN 1
#define POLLPRI 2 /* never */
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16
#define POLLNVAL 32
#define POLLRDNORM 64
#define POLLRDBAND 128 /* never */
#define POLLWRNORM 256
#define POLLWRBAND 512 /* never */

/* Milliseconds; below 0: without end. */
int poll(struct pollfd *files, nfds_t count, int timeout);

#ifdef __cplusplus
}
#endif
#endif
