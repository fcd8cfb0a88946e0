/* Every kind of frame between an export and a fault. */
#include <pebble_plugin.h>

typedef unsigned long word;
#define FUNCTION __attribute__((noinline)) word

/* Of the host. */
word pbl_host(word where);

/* No frame at all. */
FUNCTION leaf(word where) {
    *(volatile int *)where = 42;
    return 1;
}

/* Registers on the return stack. */
FUNCTION saves(word a, word b, word c, word d, word where) {
    word sum = a;
    for (word i = 0; i < 4; i++)
        sum += b * i ^ c + leaf(i == 3 ? where : (word)&sum) * d;
    return sum + a + b + c + d;
}

/* A large frame. */
FUNCTION large(word where) {
    volatile char room[9000];
    room[where & 1023] = 1;
    return saves(1, 2, 3, 4, where) + room[5];
}

/* A stack that has been moved by a number that nobody knows. */
FUNCTION moved(word where, word count) {
    volatile char *room = __builtin_alloca(count);
    room[0] = 1;
    return large(where) + room[0];
}

/* Arguments on the stack, and itself as its caller. */
FUNCTION again(word depth, word a, word b, word c, word d, word e, word f, word where) {
    if (!depth)
        return moved(where, a + 100) + f;
    return again(depth - 1, b, c, d, e, f, a, where) + a;
}

PBL_EXPORT(enter, "smi")
word enter(word where) {
    return again(2, 1, 2, 3, 4, 5, 6, where) + 1;
}

/* Out to the host, which calls back in. */
PBL_EXPORT(out, "npi")
word out(word where) {
    return pbl_host(where) + 1;
}

/* A call that leads nowhere. */
FUNCTION call(word (*function)(word)) {
    return function(1) + 1;
}

PBL_EXPORT(astray, "smi")
word astray(word where) {
    return call((word (*)(word))where) + 1;
}
