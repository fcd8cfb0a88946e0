/* Calls with a time limit: the clock ends them. */
#include "internal.h"

#include <pebble-interfaces.h>

static int bound, unbound;

/* invoke_portal_within of the header: there it takes any integers, as all calls do. */
long __invoke_portal_within(unsigned long ticks, int index, long p1, long p2, long p3, long p4, long p5) {
    if (!__opened(&bound, CLOCK_BOUND_NAME) || !__opened(&unbound, CLOCK_UNBOUND_NAME))
        return -1;
    long number = __checked(REPEATED(clock_bound(bound, ticks)));
    if (number < 0)
        return -1;
    long value = invoke_portal(index, p1, p2, p3, p4, p5);
    struct portal_result late;
    do /* a clock that is being replaced must hear of it all the same */
        late = clock_unbound(unbound, (unsigned long)number);
    while (portal_status_code(late.status) == PORTAL_MOVED);
    if (portal_status() == 0 && value == -EINTR && late.status == 0 && late.value > 0)
        return __portal_done(-1, PORTAL_TIMEOUT | (unsigned long)late.value << 16);
    /* Parked until a server would have woken this thread, or waiting for one that was being replaced: that server had the call. */
    int code = portal_status_code(portal_status());
    if ((code == PORTAL_WAIT || code == PORTAL_INTERRUPTED || code == PORTAL_MOVED) && late.status == 0 && late.value > 0)
        return __portal_done(-1, PORTAL_TIMEOUT | (unsigned long)portal_status_domain(portal_status()) << 16);
    return value;
}

int unwound_watch(void) {
    int semaphore = sem_create(0);
    if (semaphore < 0)
        return -1;
    return __checked(portal_call(SYS_CONTROL, CONTROL_WATCH, semaphore)) < 0 ? -1 : semaphore;
}

int unwound_next(void) { return (int)__checked(portal_call(SYS_CONTROL, CONTROL_UNWOUND)); }
