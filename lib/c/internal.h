/* What the files of the C library share; no part of the interface. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include <pebble.h>

/*
 * Words below every thread-local block, by which a handler and the calls that it makes know of each other (control.S). The word
 * at the very top of a stack points to its block.
 */
#define CONTROL_BYTES 144
#define CONTROL_MODE (-8)     /* 0: no handler; 1: for a stub without words and results; 2: for any */
#define CONTROL_RA (-16)
#define CONTROL_TP (-24)      /* the caller's */
#define CONTROL_VALUE (-32)   /* the last invoke_portal's */
#define CONTROL_STATUS (-40)  /* of the last call */
#define CONTROL_RESULTS (-88) /* six words */
#define CONTROL_WORDS (-128)  /* five words of the caller */
#define CONTROL_TURN (-136)   /* which of the calls on this stack it is: other than the last */
#define STACK_HEAD 16         /* above the block */

#ifndef __ASSEMBLER__

/* Records the transport status; the value, or -1 and errno if the call failed. */
long __portal_done(long value, unsigned long status);

/* For servers that answer with a negative error number: that becomes errno, too. portal_status() is set by
   calls that did not take place alone. */
long __checked(struct portal_result result);

/* The same of a call of the portal manager that says in its first further word why it has made nothing: that becomes
   portal_status(). */
long __made(struct portal_result result, const long results[MAX_RESULTS]);

/* Records the status of what another function than invoke_portal has tried. What a handler returns with is the status of its invoke_portal,
   whatever it calls besides. */
void __failed(unsigned long status);

/* A specification as calls pass it: "npaii>2" is "npaii" in one word, and 2; letters 9 to 11 from bit 8 of the second on. False, with errno and
   portal_status(), if it does not fit. */
int __pack_specification(const char *spec, unsigned long words[2]);

/* What PORTAL_SPECIFICATION is in errno, and a line about it. */
int __specification_errno(unsigned long status);
void __print_specification_error(const char *what, unsigned long status);

/* After a call with this transport status, not 0: shall it be repeated? So it is if it has not taken place: after a pause if the server is
   being replaced; once the server has woken this thread if that must wait. */
int __moved(unsigned long status);
/* The same, for a call with these words: also once pages have come that it lends. */
int __again(unsigned long status, const long words[5]);

/* A call to a server that can be replaced or make its clients wait, until it takes place. */
#define REPEATED(call)                                                                                           \
    __extension__({                                                                                              \
        struct portal_result result_;                                                                            \
        do                                                                                                       \
            result_ = (call);                                                                                    \
        while (result_.status != 0 && __moved(result_.status));                                                  \
        result_;                                                                                                 \
    })

/* What went to standard output (1) or error (2) and was lost: the error number. The program's last word to the process server tells it. */
extern int __lost[3];

/* Opens a portal by name when it is first wanted; 0 and errno if that fails. */
int __opened(int *portal, const char *name);

/* The words in which calls pass a name; false, with errno, if it does not fit. */
int __pack(const char *name, long words[], size_t count);

/* Reads into, or writes from, the rest of a page, by a window: as whence says, SEEK_READ_PAGE or SEEK_WRITE_PAGE. 0 in chunk: the next few
   bytes go in registers. Otherwise what was asked for, and what the server answered, or -1 and errno. */
long __move_page(int portal, int whence, char *buffer, size_t size, long flags, size_t *chunk);
/* The file is closed. */
void __close_pages(int portal);

/* How an open file was opened: O_RDONLY, O_WRONLY or O_RDWR, and O_APPEND; -1 and errno if it is not open. */
int __access_of(int fd);

/* A place in the start-up page, where no compiler believes that there is memory. */
static inline void *__startup(unsigned long address) {
    __asm__("" : "+r"(address));
    return (void *)address;
}

/* The C library's lock (its headers declare the rest). All zero: free. Words of lock.c. */
struct __lock {
    long owner;
    long sem;    /* made when two first meet; 0 until then */
    int waiters; /* since it was last given back */
    int depth;
};

/* True: it is this thread's now. */
int __retarget_lock_try_acquire(struct __lock *lock);

/* This domain is a copy: the other's threads are not here. */
void __locks_copied(void);
/* Which copy of the domain this is. */
extern long __copies;

/* Nobody else can be in this component: it has one thread, exports nothing, and controls no child. Then streams need no lock for a character. */
extern char __alone;

/* invoke_portal_within of pebble.h, as it is. */
long __invoke_portal_within(unsigned long ticks, int index, long p1, long p2, long p3, long p4, long p5);

#endif
#endif
