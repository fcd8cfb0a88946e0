/* What the files of the C library share; no part of the interface. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include <pebble.h>

/* Records the transport status; the value, or -1 and errno if the call failed. */
long __portal_done(long value, unsigned long status);

/* For servers that answer with a negative error number: that becomes errno, too. */
long __checked(struct portal_result result);

/* The words in which calls pass a name; false, with errno, if it does not fit. */
int __pack(const char *name, long words[], size_t count);

/* A place in the start-up page, where no compiler believes that there is memory. */
static inline void *__startup(unsigned long address) {
    __asm__("" : "+r"(address));
    return (void *)address;
}

/* The C library's lock (its headers declare the rest). All zero: free. */
struct __lock {
    int users;      /* that hold it or want it */
    int sem;        /* made when two first meet; 0 until then */
    void *owner;    /* its thread-local block */
    int depth;
};

#endif
