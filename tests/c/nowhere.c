/* The compiler takes malloc for one that never fails, where nobody uses what it gives, and a loop without an end for one that is never begun: so it
   makes nothing of this at all, and there is neither a way out of main nor one into whatever lies behind it. */
#include <stdlib.h>

int main(void) {
    int taken = 0;
    while (malloc(100) != NULL)
        taken++;
    return taken;
}
