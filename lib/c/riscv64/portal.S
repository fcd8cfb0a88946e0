/*
 * Portal calls, and fork.
 *
 * The portal returns to ra, with the value in a0 and the transport status in a1: just where the C calling convention
 * wants a structure of two words, so the whole of portal_call is two instructions.
 */
#include <pebble.h>

    .section .text.portal_call, "ax"
    .globl portal_call
    .type portal_call, @function
portal_call:
    mv t0, a0
    ecall
    .size portal_call, . - portal_call

    .section .text.portal_call_results, "ax"
    .globl portal_call_results
    .type portal_call_results, @function
portal_call_results:
    addi sp, sp, -16
    sd ra, 8(sp)
    sd a0, 0(sp)
    mv a0, a1
    mv a1, a2
    mv a2, a3
    mv a3, a4
    mv a4, a5
    mv a5, a6
    call portal_call
    ld t0, 0(sp)
    sd a2, 0(t0)
    sd a3, 8(t0)
    sd a4, 16(t0)
    sd a5, 24(t0)
    sd a6, 32(t0)
    sd a7, 40(t0)
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
    .size portal_call_results, . - portal_call_results

    .section .text.invoke_portal_results, "ax"
    .globl invoke_portal_results
    .type invoke_portal_results, @function
invoke_portal_results:
    srli t1, a1, 12
    bnez t1, 4f
    addi sp, sp, -80
    sd ra, 72(sp)
    sd a0, 0(sp)
    sd a1, 8(sp)
    sd a2, 16(sp)
    sd a3, 24(sp)
    sd a4, 32(sp)
    sd a5, 40(sp)
    sd a6, 48(sp)
1:  call portal_call_results
    bnez a1, 3f
2:  ld ra, 72(sp)
    addi sp, sp, 80
    tail __portal_done
3:  sd a1, 64(sp)               /* not taken place: perhaps once more, with the same words */
    mv a0, a1
    addi a1, sp, 16
    call __again
    mv t0, a0
    ld a0, 0(sp)
    ld a1, 8(sp)
    ld a2, 16(sp)
    ld a3, 24(sp)
    ld a4, 32(sp)
    ld a5, 40(sp)
    ld a6, 48(sp)
    bnez t0, 1b
    li a0, -1
    ld a1, 64(sp)
    j 2b
4:  li a0, -1                   /* no index: what a function returned that failed */
    li a1, PORTAL_CLOSED
    tail __portal_done
    .size invoke_portal_results, . - invoke_portal_results

/* What fork keeps of a thread, on its stack: ra, s0-s11, tp, then fs0-fs11. */
#define FRAME 208

    .macro each_saved op, fop
    \op ra, 0(sp)
    \op s0, 8(sp)
    \op s1, 16(sp)
    \op s2, 24(sp)
    \op s3, 32(sp)
    \op s4, 40(sp)
    \op s5, 48(sp)
    \op s6, 56(sp)
    \op s7, 64(sp)
    \op s8, 72(sp)
    \op s9, 80(sp)
    \op s10, 88(sp)
    \op s11, 96(sp)
    \op tp, 104(sp)
    \fop fs0, 112(sp)
    \fop fs1, 120(sp)
    \fop fs2, 128(sp)
    \fop fs3, 136(sp)
    \fop fs4, 144(sp)
    \fop fs5, 152(sp)
    \fop fs6, 160(sp)
    \fop fs7, 168(sp)
    \fop fs8, 176(sp)
    \fop fs9, 184(sp)
    \fop fs10, 192(sp)
    \fop fs11, 200(sp)
    .endm

    .section .text.fork, "ax"
    .globl fork
    .type fork, @function
fork:
    addi sp, sp, -FRAME
    each_saved sd, fsd
    mv a0, sp
    call __fork                 /* (frame) -> thread identity or -1 */
    ld ra, 0(sp)
    addi sp, sp, FRAME
    ret
    .size fork, . - fork

    .section .text.__domain_fork, "ax"
    .globl __domain_fork
    .type __domain_fork, @function
__domain_fork:
    addi sp, sp, -FRAME
    each_saved sd, fsd
    mv a1, a0
    mv a0, sp
    call __domain_fork_frame    /* (frame, handler) -> child's domain or -1 */
    ld ra, 0(sp)
    addi sp, sp, FRAME
    ret
    .size __domain_fork, . - __domain_fork

/* The child's thread: on the frame, in the copy of the stack. */
    .section .text.__domain_fork_start, "ax"
    .globl __domain_fork_start
    .type __domain_fork_start, @function
__domain_fork_start:
    ld tp, 104(sp)
    call __locks_copied
    each_saved ld, fld
    li a0, 0
    addi sp, sp, FRAME
    ret
    .size __domain_fork_start, . - __domain_fork_start

/* The new thread: a0 is the image that __fork made, whose first word is the size of the copy. */
    .section .text.__fork_start, "ax"
    .globl __fork_start
    .type __fork_start, @function
__fork_start:
    li t1, STACK_SLOT - 1
    addi t0, sp, -1
    or t0, t0, t1
    addi t0, t0, 1              /* top of this stack */
    ld t1, 0(a0)
    sub sp, t0, t1
    mv s1, a0
    mv a1, sp
    call __fork_copy            /* works below sp; needs no tp */
    ld tp, 104(sp)
    mv a0, s1
    call free
    each_saved ld, fld
    li a0, 0
    addi sp, sp, FRAME
    ret
    .size __fork_start, . - __fork_start
