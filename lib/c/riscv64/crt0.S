/*
 * Where threads come in: at the start, by thread_create, and through a portal from another domain.
 *
 * Whoever starts a thread gives it a stack pointer and nothing else. Its thread-local block (errno and the like)
 * lies at the top of what it uses of that stack, with tp at its lowest word. A call through a portal arrives with
 * somebody else's tp, so it gets a block of its own for as long as it lasts. gp is never used: the nucleus
 * destroys it.
 */
#include "../internal.h"

    .globl __image_va
    .set __image_va, IMAGE_VA

    .section .text.crt0, "ax"
/* Makes the thread-local block. Returns to t5; changes sp, tp and t1 to t4 and t6 only. */
    .globl __pebble_tls
    .type __pebble_tls, @function
__pebble_tls:
tls_block:
    addi sp, sp, -STACK_HEAD
    lui t1, %hi(__tls_size)
    addi t1, t1, %lo(__tls_size)
    sub tp, sp, t1
    sd tp, STACK_HEAD - 8(sp)
    addi sp, tp, -CONTROL_BYTES
    sd zero, CONTROL_MODE(tp)
    sd zero, CONTROL_STATUS(tp)
    ld t2, CONTROL_TURN(tp)
    addi t2, t2, 1
    sd t2, CONTROL_TURN(tp)
    add t1, t1, tp              /* t1: end of the block */
    lui t2, %hi(__tbss_offset)
    addi t2, t2, %lo(__tbss_offset)
    add t2, t2, tp              /* t2: end of its initialised part */
    mv t3, tp
    lla t4, __tdata_start
    j 2f
1:  ld t6, 0(t4)
    sd t6, 0(t3)
    addi t4, t4, 8
    addi t3, t3, 8
2:  bltu t3, t2, 1b
    j 4f
3:  sd zero, 0(t3)
    addi t3, t3, 8
4:  bltu t3, t1, 3b
    jr t5
    .size __pebble_tls, . - __pebble_tls

    .globl _start
    .type _start, @function
_start:
    jal t5, tls_block
    tail __pebble_start
    .size _start, . - _start

/* A thread made by thread_create: a0 is its record. */
    .section .text.__thread_start, "ax"
    .globl __thread_start
    .type __thread_start, @function
__thread_start:
    jal t5, tls_block
    tail __thread_main
    .size __thread_start, . - __thread_start

/*
 * A call from another domain for the function in t0, with the words in a0 to a5. The caller's tp comes back as it was
 * (an `m` portal trusts us to keep it). The further result words leave in a2 to a7; the portal clears those
 * that the specification does not name.
 */
    .section .text.__pebble_enter, "ax"
    .globl __pebble_enter
    .type __pebble_enter, @function
__pebble_enter:
    addi sp, sp, -32
    sd ra, 0(sp)
    sd s0, 8(sp)
    sd tp, 16(sp)
    sd zero, 24(sp)             /* a handler's block, if there was one on this stack, is overwritten */
    mv s0, sp
    jal t5, tls_block
    jalr t0
    lui t0, %tprel_hi(portal_results)
    add t0, t0, tp, %tprel_add(portal_results)
    addi t0, t0, %tprel_lo(portal_results)
    ld a2, 0(t0)
    ld a3, 8(t0)
    ld a4, 16(t0)
    ld a5, 24(t0)
    ld a6, 32(t0)
    ld a7, 40(t0)
    mv sp, s0
    ld ra, 0(sp)
    ld s0, 8(sp)
    ld tp, 16(sp)
    addi sp, sp, 32
    ret
    .size __pebble_enter, . - __pebble_enter

/* Entries for functions registered at run time: entry n, 8 bytes each, looks up function n. */
    .section .text.__pebble_entries, "ax"
    .globl __pebble_entries
    .balign 8
__pebble_entries:
    .option push
    .option norvc
    .option norelax
    .set n, 0
    .rept 32
    li t0, n * 8
    j 1f
    .set n, n + 1
    .endr
    .option pop
1:  lla t1, __pebble_functions
    add t0, t0, t1
    ld t0, 0(t0)
    tail __pebble_enter
    .size __pebble_entries, . - __pebble_entries
