/* Calls that are refused before they take place, and what a C program is told of it. */
#include <pebble.h>

static long borrow(long page) { return page; }

int main(void) {
    int failed = portal_register("refused.borrow", "npw", borrow) < 0;
    int index = portal_open("refused.borrow");
    failed += invoke_portal(index, 1L << 40) != -1 || portal_status() != (unsigned long)(PORTAL_WINDOW | get_asid() << 16);
    portal_perror("window");
    /* Its own gives what it asks; another specification than expected is refused. */
    char spec[SPECLEN + 1];
    int own = portal_open_with("refused.borrow", "", spec);
    failed += own < 0 || strcmp(spec, "npw") != 0 || portal_close(own) != 0;
    own = portal_open_as("refused.borrow", "npw");
    failed += own < 0 || portal_close(own) != 0;
    failed += portal_open_as("refused.borrow", "npi") != -1 || errno != EPROTO;
    failed += domain_fork(NULL) != -1 || errno != EINVAL;
    perror("fork");
    failed += domain_control(1, NULL) != -1 || errno != EINVAL;
    perror("control");
    return failed;
}
