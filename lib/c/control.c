/* Controlling domains: children that are copies, or programs; stubs; changes of the own table. */
#include "internal.h"

#include <string.h>

#define HANDLERS 8 /* as many as control.S has */

extern char __pebble_handler_entries[];
extern char __pebble_detour[];
void __domain_fork_start(void);

void *__pebble_handlers[HANDLERS];
int __pebble_behalf;
/* For each system portal its place among the portals on behalf, plus one. */
const unsigned char __pebble_places[FIRST_FREE] = {BEHALF_PLACES};

static void (*notify)(int asid, int index, const char *spec);

/* The entry for stubs that shall call this function; 0, with errno, for a null pointer or if there are too many. */
static long entry(void *function) {
    if (function == NULL) {
        errno = EINVAL;
        return 0;
    }
    __alone = 0;
    for (int n = 0; n < HANDLERS; n++) {
        void *none = NULL;
        if (__pebble_handlers[n] == function ||
            __atomic_compare_exchange_n(&__pebble_handlers[n], &none, function, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            none == function)
            return (long)(__pebble_handler_entries + n * PEBBLE_HANDLER_BYTES);
    }
    errno = ENOSPC;
    return 0;
}

/* Before there is a child: it may call at once. */
static int prepare(void) {
    __pebble_behalf = (int)__checked(portal_call(SYS_CONTROL, CONTROL_BEHALF_INDEX, 0L));
    return __pebble_behalf > 0;
}

int __domain_fork_frame(unsigned long *frame, void *handler) {
    long to = entry(handler);
    if (to == 0 || !prepare())
        return -1;
    long child = __checked(REPEATED(portal_call(SYS_PROCESS, 0, to, frame)));
    return child < 0 ? -1 : (int)__checked(REPEATED(portal_call(SYS_PROCESS, child, 0, __domain_fork_start, frame)));
}

int __domain_control(int child, unsigned long handler) {
    long to = entry((void *)handler);
    return to == 0 || !prepare() ? -1 : (int)__checked(REPEATED(portal_call(SYS_PROCESS, child, to)));
}

int fault_range(void *address, size_t pages, int index) {
    return (int)__checked(portal_call(SYS_CONTROL, CONTROL_FAULT_RANGE, address, pages, index));
}

int fault_provide(int asid, unsigned long address, void *page, int writable) {
    static int provide;
    if (provide == 0 && (provide = portal_open("vm.provide")) < 0) {
        provide = 0;
        return -1;
    }
    const long rights = writable ? RIGHT_READ | RIGHT_WRITE : RIGHT_READ;
    return (int)__checked(portal_call(provide, asid, address & -4096UL, page, rights));
}

int __portal_notify(unsigned long function) {
    notify = (void (*)(int, int, const char *))function;
    long resume = function == 0 ? 0 : (long)__pebble_detour;
    return (int)__checked(portal_call(SYS_CONTROL, CONTROL_NOTIFY, resume));
}

void __pebble_notice(long asid, long index, unsigned long first, unsigned long rest) {
    unsigned long words[3] = {first, rest, 0};
    if (notify != NULL)
        notify((int)asid, (int)index, (const char *)words);
}

/* A string has at most 11 letters beside its number of results. */
int __portal_create_child(int asid, int index, const char *spec, long constant, unsigned long handler) {
    long results[MAX_RESULTS];
    unsigned long words[2];
    if (!__pack_specification(spec, words))
        return -1;
    long to = *spec == 0 ? 0 : entry((void *)handler);
    if (*spec != 0 && to == 0)
        return -1;
    return (int)__made(
        portal_call_results(results, SYS_CONTROL, CONTROL_CREATE_CHILD | (long)asid << 16 | (long)index << 32,
                            words[0], constant, (unsigned long)to | words[1] << 32),
        results);
}
