/* bloated: faults at once; its file has as many symbols as fit. */
#include <pebble.h>

__asm__(".altmacro\n"
        ".macro junk n\n.globl _junk_\\n\n.type _junk_\\n, @function\n_junk_\\n:\n.endm\n"
        ".text\n.set i, 0\n.rept 150000\njunk %i\n.set i, i + 1\n.endr\nnop\n");
extern char _junk_0[];

int main(void) {
    *(char *volatile *)0 = _junk_0;
    return 0;
}
