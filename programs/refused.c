/* Calls that are refused before they take place, and what a C program is told of it. */
#include <pebble.h>

static long borrow(long page) { return page; }

int main(void) {
    int failed = portal_register("refused.borrow", "npw", borrow) < 0;
    int index = portal_open("refused.borrow");
    failed += invoke_portal(index, 1L << 40) != -1 || portal_status() != (unsigned long)(PORTAL_WINDOW | get_asid() << 16);
    portal_perror("window");
    failed += domain_fork(NULL) != -1 || errno != EINVAL;
    perror("fork");
    failed += domain_control(1, NULL) != -1 || errno != EINVAL;
    perror("control");
    return failed;
}
