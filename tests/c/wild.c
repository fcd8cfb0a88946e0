/* wild HOW: calls through a pointer that leads to no function. */
#include <pebble.h>
#include <stdio.h>
#include <string.h>

static int data[4] = {1, 2, 3, 4};
static const int constant[4] = {1, 2, 3, 4};
static char bytes[16] = "\x82\x80\x82\x80";

typedef int (*function)(int);

static int harmless(int n) { return n + 1; }

static function pointer_to(const char *how) {
    static long on_stack;
    int local[4] = {0};
    on_stack = (long)local;
    if (strcmp(how, "data") == 0)
        return (function)data;
    if (strcmp(how, "constant") == 0)
        return (function)constant;
    if (strcmp(how, "bytes") == 0)
        return (function)bytes;
    if (strcmp(how, "stack") == 0)
        return (function)on_stack;
    if (strcmp(how, "heap") == 0)
        return (function)calloc(1, 100);
    if (strcmp(how, "null") == 0)
        return NULL;
    if (strcmp(how, "far") == 0)
        return (function)0x123456789abcdef0;
    return harmless;
}

/* Seen by the compiler, which must not take it for what never happens. */
static int visibly_null(void) {
    function none = NULL;
    return none(1);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "visibly") == 0)
        return visibly_null();
    volatile function call = pointer_to(how);
    printf("%d\n", call(1));
    return 0;
}
