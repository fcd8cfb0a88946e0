/*
 * Interposition: where stubs of controlled domains come in, and where a call resumes that changed the own table.
 *
 * A handler is entered with the registers of a stub: the index in a0, the caller's words in a1 to a5, the caller's tp. It runs on a
 * stack of this domain's queue. Its thread-local block, once made, stays there for the next call: only the CONTROL words below
 * it are set anew. So a thread-local variable keeps whatever the last handler on that stack has left.
 *
 * Each handler has two entries, 4 bytes apart: the second is for stubs whose original takes words, gives further results, or a
 * value that may not fit an int. Handlers may be declared with int parameters: invoke_portal puts back the words' upper halves if the
 * lower ones have not changed, and so does the return with the value.
 */
#include <pebble.h>
#include "../internal.h"

    .macro entry n
    .option push
    .option norvc
    .option norelax
    .balign 8
    j slim\n
    j full\n
    .option pop
    .endm

    .macro handler n
slim\n:
    ld t1, -8(sp)               /* the thread-local block of this stack */
    lla t0, __pebble_handlers + \n * 8
    ld t0, 0(t0)
    beqz t1, slim_first
    sd tp, CONTROL_TP(t1)
    mv tp, t1
    addi sp, tp, -CONTROL_BYTES
    sd ra, CONTROL_RA(tp)
    li t1, 1
    sd t1, CONTROL_MODE(tp)
    sd zero, CONTROL_STATUS(tp)
    ld t1, CONTROL_TURN(tp)
    addi t1, t1, 1
    sd t1, CONTROL_TURN(tp)
    jalr t0
    ld a1, CONTROL_STATUS(tp)
    ld ra, CONTROL_RA(tp)
    bnez a1, broken
    ld tp, CONTROL_TP(tp)
    ret
full\n:
    lla t0, __pebble_handlers + \n * 8
    ld t0, 0(t0)
    j full
    .endm

    .section .text.__pebble_handler, "ax"
    .globl __pebble_handler_entries
__pebble_handler_entries:
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    entry \n
    .endr
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    handler \n
    .endr

slim_first:
    mv a6, tp
    jal t5, __pebble_tls
    sd a6, CONTROL_TP(tp)
    sd ra, CONTROL_RA(tp)
    li t1, 1
    j 1f
full:
    mv a6, tp
    ld t1, -8(sp)
    bnez t1, 2f
    jal t5, __pebble_tls
    mv t1, tp
2:  mv tp, t1
    addi sp, tp, -CONTROL_BYTES
    sd a6, CONTROL_TP(tp)
    sd ra, CONTROL_RA(tp)
    sd a1, CONTROL_WORDS(tp)
    sd a2, CONTROL_WORDS+8(tp)
    sd a3, CONTROL_WORDS+16(tp)
    sd a4, CONTROL_WORDS+24(tp)
    sd a5, CONTROL_WORDS+32(tp)
    li t1, 2
1:  sd t1, CONTROL_MODE(tp)
    ld t1, CONTROL_TURN(tp)
    addi t1, t1, 1
    sd t1, CONTROL_TURN(tp)
    sd zero, CONTROL_STATUS(tp)
    sd zero, CONTROL_VALUE(tp)
    sd zero, CONTROL_RESULTS(tp)
    sd zero, CONTROL_RESULTS+8(tp)
    sd zero, CONTROL_RESULTS+16(tp)
    sd zero, CONTROL_RESULTS+24(tp)
    sd zero, CONTROL_RESULTS+32(tp)
    sd zero, CONTROL_RESULTS+40(tp)
    jalr t0
    ld t0, CONTROL_VALUE(tp)
    xor t1, t0, a0
    sext.w t1, t1
    bnez t1, 3f
    mv a0, t0
3:  ld a2, CONTROL_RESULTS(tp)
    ld a3, CONTROL_RESULTS+8(tp)
    ld a4, CONTROL_RESULTS+16(tp)
    ld a5, CONTROL_RESULTS+24(tp)
    ld a6, CONTROL_RESULTS+32(tp)
    ld a7, CONTROL_RESULTS+40(tp)
    ld a1, CONTROL_STATUS(tp)
    ld ra, CONTROL_RA(tp)
    ld tp, CONTROL_TP(tp)
    ret
broken:
    ld tp, CONTROL_TP(tp)
    ret

/*
 * invoke_portal: for a handler, the call that it was entered for goes on: system portals act on the child, and what comes back beside
 * the value is kept for the handler's return.
 */
    .section .text.invoke_portal, "ax"
    .globl invoke_portal
    .type invoke_portal, @function
invoke_portal:
    srli t1, a0, 12             /* no index: what a function returned that failed */
    bnez t1, bad_index
    ld t1, CONTROL_MODE(tp)
    addi sp, sp, -16
    sd ra, 8(sp)
    beqz t1, 4f
    li t2, FIRST_FREE
    bltu a0, t2, 3f
1:  addi t1, t1, -1
    bnez t1, 5f
    mv t0, a0
    jal 2f
    sd a1, CONTROL_STATUS(tp)
    ld ra, 8(sp)
    addi sp, sp, 16
    bnez a1, 6f
    ret
2:  ecall
3:  lla t0, __pebble_places
    add t0, t0, a0
    lbu t0, 0(t0)
    beqz t0, 1b
    addi a0, t0, -1
    lla t0, __pebble_behalf
    lw t0, 0(t0)
    add a0, a0, t0
    j 1b
4:  addi sp, sp, -64
    sd a0, 0(sp)
    sd a1, 8(sp)
    sd a2, 16(sp)
    sd a3, 24(sp)
    sd a4, 32(sp)
    sd a5, 40(sp)
7:  call portal_call
    bnez a1, 8f
9:  addi sp, sp, 64
    ld ra, 8(sp)
    addi sp, sp, 16
6:  tail __portal_done
8:  sd a1, 48(sp)               /* not taken place: perhaps once more, with the same words */
    mv a0, a1
    addi a1, sp, 8
    call __again
    mv t0, a0
    ld a0, 0(sp)
    ld a1, 8(sp)
    ld a2, 16(sp)
    ld a3, 24(sp)
    ld a4, 32(sp)
    ld a5, 40(sp)
    bnez t0, 7b
    li a0, -1
    ld a1, 48(sp)
    j 9b
5:  .macro merge word, at
    ld t1, CONTROL_WORDS+\at(tp)
    xor t2, t1, \word
    sext.w t2, t2
    bnez t2, .+6
    c.mv \word, t1
    .endm
    merge a1, 0
    merge a2, 8
    merge a3, 16
    merge a4, 24
    merge a5, 32
    mv t0, a0
    jal 2b
    sd a0, CONTROL_VALUE(tp)
    sd a1, CONTROL_STATUS(tp)
    sd a2, CONTROL_RESULTS(tp)
    sd a3, CONTROL_RESULTS+8(tp)
    sd a4, CONTROL_RESULTS+16(tp)
    sd a5, CONTROL_RESULTS+24(tp)
    sd a6, CONTROL_RESULTS+32(tp)
    sd a7, CONTROL_RESULTS+40(tp)
    ld ra, 8(sp)
    addi sp, sp, 16
    bnez a1, 6b
    ret
bad_index:
    li a0, -1
    li a1, PORTAL_CLOSED
    tail __portal_done
    .size invoke_portal, . - invoke_portal
    .if NPORTALS - (1 << 12)
    .error "invoke_portal counts on this"
    .endif

/* A call that changed this domain's table resumes here: each change is told, then it goes on as if it had just returned. */
    .section .text.__pebble_detour, "ax"
    .globl __pebble_detour
    .type __pebble_detour, @function
__pebble_detour:
    addi sp, sp, -64
    sd a0, 0(sp)
    sd a1, 8(sp)
    sd a2, 16(sp)
    sd a3, 24(sp)
    sd a4, 32(sp)
    sd a5, 40(sp)
    sd a6, 48(sp)
    sd a7, 56(sp)
1:  li t0, SYS_CONTROL
    li a1, CONTROL_NOTICE
    jal 2f
    blez a0, 3f
    mv a0, a5
    mv a1, a2
    mv a2, a3
    mv a3, a4
    call __pebble_notice
    j 1b
2:  ecall
3:  mv ra, a2
    ld a0, 0(sp)
    ld a1, 8(sp)
    ld a2, 16(sp)
    ld a3, 24(sp)
    ld a4, 32(sp)
    ld a5, 40(sp)
    ld a6, 48(sp)
    ld a7, 56(sp)
    addi sp, sp, 64
    ret
    .size __pebble_detour, . - __pebble_detour
