/* WebAssembly cannot jump back: the programs may prepare for errors, and end if there is one. */
#ifndef PEBBLE_BENCH_SETJMP_H
#define PEBBLE_BENCH_SETJMP_H

typedef int jmp_buf[1];

#define setjmp(buffer) ((void)(buffer), 0)
#define _setjmp setjmp

static inline _Noreturn void longjmp(jmp_buf buffer, int value) {
    (void)buffer, (void)value;
    __builtin_trap();
}

#define _longjmp longjmp

#endif
