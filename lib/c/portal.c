/* Portals by name, and what became of a call. */
#include "internal.h"

#include <ctype.h>
#include <pebble-interfaces.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES 32 /* as many as crt0.S has */

extern char __pebble_entries[];
void *__pebble_functions[ENTRIES];

__thread long portal_results[MAX_RESULTS];

static unsigned long *last_status(void) {
    return (unsigned long *)(PEBBLE_BLOCK() + CONTROL_STATUS);
}

unsigned long portal_status(void) { return *last_status(); }

static int errno_of(unsigned long status) {
    switch (portal_status_code(status)) {
    case PORTAL_DEAD: return EPIPE;
    case PORTAL_CLOSED: return EBADF;
    case PORTAL_WAIT: /* the wait was cut short */
    case PORTAL_INTERRUPTED: return EINTR;
    case PORTAL_CONSENT: return EPROTOTYPE;
    case PORTAL_SPECIFICATION: return __specification_errno(status);
    case PORTAL_TIMEOUT: return ETIMEDOUT;
    default: return EIO;
    }
}

long __portal_done(long value, unsigned long status) {
    *last_status() = status;
    if (status == 0)
        return value;
    errno = errno_of(status);
    return -1;
}

int __moved(unsigned long status) {
    switch (portal_status_code(status)) {
    case PORTAL_WAIT: return portal_call(SYS_PARK).value == 0;
    case PORTAL_MOVED: return portal_call(SYS_HRSLEEP, portal_call(SYS_HRTIME).value + TIME_HZ / 10000).value == 0;
    default: return 0;
    }
}

/* Pages of stacks and heaps come when they are touched. Portal code touches nothing, and refuses a window over one that is still to come. */
static int have_come(const long words[5]) {
    static int touch;
    int come = 0;
    for (int i = 0; i < 5; i++) {
        unsigned long address = (unsigned long)words[i];
        if (address >= IMAGE_VA && address < USER_END && __opened(&touch, VM_TOUCH_NAME))
            come |= vm_touch(touch, (const void *)address).value == 1;
    }
    return come;
}

int __again(unsigned long status, const long words[5]) {
    return portal_status_code(status) == PORTAL_WINDOW ? have_come(words) : __moved(status);
}

void __failed(unsigned long status) {
    if (*(long *)(PEBBLE_BLOCK() + CONTROL_MODE) == 0)
        *last_status() = status;
}

long __checked(struct portal_result result) {
    if (result.status == 0 && result.value >= 0)
        return result.value;
    errno = result.status == 0 ? (int)-result.value : errno_of(result.status);
    if (result.status != 0)
        __failed(result.status);
    return -1;
}

long __made(struct portal_result result, const long results[MAX_RESULTS]) {
    long value = __checked(result);
    if (value < 0 && result.status == 0 && results[0] != 0 && errno == errno_of((unsigned long)results[0]))
        __failed((unsigned long)results[0]);
    return value;
}

int __opened(int *portal, const char *name) {
    if (*portal == 0) {
        int index = portal_open(name);
        if (index < 0)
            return 0;
        *portal = index;
    }
    return 1;
}

int __pack(const char *name, long words[], size_t count) {
    size_t length = strlen(name);
    if (length > count * sizeof(long)) {
        errno = ENAMETOOLONG;
        return 0;
    }
    memset(words, 0, count * sizeof(long));
    memcpy(words, name, length);
    return 1;
}

/* The end of a sentence that begins "domain N". */
static const char *became(int code) {
    switch (code) {
    case PORTAL_DEAD: return "died in the call";
    case PORTAL_CLOSED: return "has closed this portal";
    case PORTAL_INTERRUPTED: return "interrupted the wait";
    case PORTAL_MOVED: return "is being replaced";
    case PORTAL_WAIT: return "has nothing for it yet";
    case PORTAL_WINDOW: return "may not lend this memory, or did not give it back";
    case PORTAL_TIMEOUT: return "had the call when its time was over";
    case PORTAL_CAPABILITY: return "does not have this capability, or may not pass it";
    default: return "failed";
    }
}

void portal_perror(const char *what) {
    unsigned long status = portal_status();
    int domain = portal_status_domain(status), code = portal_status_code(status);
    if (code == 0 || domain == 0 || errno != errno_of(status))
        perror(what); /* it is about something else */
    else if (code == PORTAL_SPECIFICATION)
        __print_specification_error(what, status);
    else if (code == PORTAL_CONSENT)
        fprintf(stderr, "%s: domain %d asks for the letter %c, which domain %d does not give\n", what, domain,
                (int)(status >> 48), (int)(status >> 32 & 0xffff));
    else if (code >= 'A' && code <= 'Z')
        fprintf(stderr, "%s: domain %d: letter %c refused the word\n", what, domain, code);
    else
        fprintf(stderr, "%s: domain %d %s\n", what, domain, became(code));
}

int portal_open(const char *name) { return portal_open_with(name, "", NULL); }

/* A set of letters, as pm.open takes it: a bit for each from 'A' on. */
static long letter_set(const char *letters) {
    unsigned long set = 0;
    for (; *letters != 0; letters++)
        if (isalpha((unsigned char)*letters))
            set |= 1UL << (*letters - 'A');
    return (long)set;
}

int portal_open_with(const char *name, const char *letters, char spec[SPECLEN + 1]) {
    long n[3], results[MAX_RESULTS];
    if (!__pack(name, n, 3))
        return -1;
    for (int patience = 1000; patience > 0; patience--) {
        int index = (int)__made(
            portal_call_results(results, SYS_PORTAL_OPEN, n[0], n[1], n[2], letter_set(letters)), results);
        if (index >= 0) {
            if (spec != NULL) {
                memcpy(spec, results, SPECLEN);
                spec[SPECLEN] = 0;
            }
            return index;
        }
        if (errno != EBUSY)
            return -1;
        msleep(1); /* an exporter's policy is being asked; one at a time */
    }
    return -1;
}

int portal_open_as(const char *name, const char *spec) {
    char its[SPECLEN + 1];
    int index = portal_open_with(name, spec, its);
    if (index < 0 || strcmp(its, spec) == 0)
        return index;
    portal_close(index);
    errno = EPROTO;
    return -1;
}

int portal_guard(int interface, int way, long word) {
    return (int)__checked(portal_call(SYS_CONTROL, CONTROL_GUARD | (long)way << 16, interface, word));
}

int portal_close_many(int first, int count) {
    return (int)__checked(portal_call(SYS_PORTAL_CLOSE, first, count));
}

int portal_close(int index) { return portal_close_many(index, 1); }

/* An entry of its own for a function, or ENTRIES: there is none left. */
static int claim(void *function) {
    for (int entry = 0; entry < ENTRIES; entry++) {
        void *none = NULL;
        if (__atomic_compare_exchange_n(
                &__pebble_functions[entry], &none, function, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return entry;
    }
    return ENTRIES;
}

int portal_register(const char *name, const char *spec, void *function) {
    long n[3], results[MAX_RESULTS];
    unsigned long letters[2];
    if (!__pack(name, n, 3) || !__pack_specification(spec, letters))
        return -1;
    if (function == NULL) {
        errno = EINVAL;
        return -1;
    }
    __alone = 0;
    int entry = claim(function);
    if (entry == ENTRIES) {
        errno = ENOSPC;
        return -1;
    }
    long address = (long)__pebble_entries + entry * 8;
    long made = __made(portal_call_results(results, SYS_PORTAL_REGISTER, n[0], n[1], n[2], letters[0],
                                           (unsigned long)address | letters[1] << 32),
                       results);
    if (made < 0)
        __pebble_functions[entry] = NULL;
    return (int)made;
}

int portal_create(int interface, int count, long constant) {
    long results[MAX_RESULTS];
    return (int)__made(portal_call_results(results, SYS_PORTAL_CREATE, interface, count, constant), results);
}

int portal_remove(int first, int count) {
    return (int)__checked(portal_call(SYS_PORTAL_REMOVE, first, count));
}
