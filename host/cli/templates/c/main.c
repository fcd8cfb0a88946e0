/* {{name}}: what it does, in one line. */
#include <stdio.h>

#include "pebble.h"

int main(int argc, char **argv)
{
    printf("hello from %s, in domain %d\n", argc > 0 ? argv[0] : "{{name}}", (int)get_asid());
    return 0;
}
