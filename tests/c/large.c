/* A program whose file is larger than the heap of most components: it says so if all of it has come. */
#include <pebble.h>

#define BYTES 2600000

static const volatile char content[BYTES] = {'a', [BYTES / 2] = 'b', [BYTES - 1] = 'c'};

int main(void) {
    int sound = content[0] == 'a' && content[BYTES / 2] == 'b' && content[BYTES - 1] == 'c' && content[BYTES - 2] == 0;
    printf("%s\n", sound ? "all there" : "damaged");
    return !sound;
}
