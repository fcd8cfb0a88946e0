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
    /* A specification that is wrong says where: found by the library, by the portal manager, by the compiler. */
    failed += portal_register("refused.bad", "npi>9", borrow) != -1 || errno != EINVAL || portal_status_column(portal_status()) != 5;
    portal_perror("results");
    failed += portal_register("refused.bad", "npaiz", borrow) != -1 || errno != EINVAL || portal_status_column(portal_status()) != 5;
    portal_perror("letter");
    failed += portal_register("refused.letter", "npiQ", borrow) < 0;
    failed += portal_open_as("refused.letter", "npiQ") != -1 || errno != ENOPROTOOPT || portal_status_column(portal_status()) != 4;
    portal_perror("template");
    failed += domain_fork(NULL) != -1 || errno != EINVAL;
    perror("fork");
    failed += domain_control(1, NULL) != -1 || errno != EINVAL;
    perror("control");
    return failed;
}
