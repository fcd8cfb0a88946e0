/*
 * Portal calls, and fork.
 *
 * The portal returns to ra, with the value in $2 and the transport status in $3: just where the C calling convention
 * wants a structure of two words, so the whole of portal_call is two instructions.
 */
#include <pebble.h>

    .set noreorder
    .set noat

    .section .text.portal_call, "ax"
    .globl portal_call
    .type portal_call, @function
portal_call:
    move $12, $4
    syscall
    .size portal_call, . - portal_call

    .section .text.portal_call_results, "ax"
    .globl portal_call_results
    .type portal_call_results, @function
portal_call_results:
    daddiu $29, $29, -16
    sd $31, 8($29)
    sd $4, 0($29)
    move $4, $5
    move $5, $6
    move $6, $7
    move $7, $8
    move $8, $9
    jal portal_call
    move $9, $10
    ld $12, 0($29)
    sd $6, 0($12)
    sd $7, 8($12)
    sd $8, 16($12)
    sd $9, 24($12)
    sd $10, 32($12)
    sd $11, 40($12)
    ld $31, 8($29)
    jr $31
    daddiu $29, $29, 16
    .size portal_call_results, . - portal_call_results

    .section .text.invoke_portal_results, "ax"
    .globl invoke_portal_results
    .type invoke_portal_results, @function
invoke_portal_results:
    dsrl $13, $5, 12
    bnez $13, 4f
    nop
    daddiu $29, $29, -80
    sd $31, 72($29)
    sd $4, 0($29)
    sd $5, 8($29)
    sd $6, 16($29)
    sd $7, 24($29)
    sd $8, 32($29)
    sd $9, 40($29)
    sd $10, 48($29)
1:  jal portal_call_results
    nop
    bnez $3, 3f
    nop
2:  ld $31, 72($29)
    daddiu $29, $29, 80
    move $4, $2
    j __portal_done
    move $5, $3
3:  sd $3, 64($29)              /* not taken place: perhaps once more, with the same words */
    daddiu $5, $29, 16
    jal __again
    move $4, $3
    ld $4, 0($29)
    ld $5, 8($29)
    ld $6, 16($29)
    ld $7, 24($29)
    ld $8, 32($29)
    ld $9, 40($29)
    bnez $2, 1b
    ld $10, 48($29)
    li $2, -1
    b 2b
    ld $3, 64($29)
4:  li $4, -1                   /* no index: what a function returned that failed */
    j __portal_done
    li $5, PORTAL_CLOSED
    .size invoke_portal_results, . - invoke_portal_results

/* What fork keeps of a thread, on its stack: ra, $16-$23, fp, and the thread-local block, which gp is beyond. */
#define FRAME 96
#define BLOCK 80

    .macro each_saved op
    \op $31, 0($29)
    \op $16, 8($29)
    \op $17, 16($29)
    \op $18, 24($29)
    \op $19, 32($29)
    \op $20, 40($29)
    \op $21, 48($29)
    \op $22, 56($29)
    \op $23, 64($29)
    \op $30, 72($29)
    .endm

    .macro save_all
    each_saved sd
    daddiu $12, $28, -PEBBLE_TP_OFFSET
    sd $12, BLOCK($29)
    .endm

    .macro load_block
    ld $28, BLOCK($29)
    daddiu $28, $28, PEBBLE_TP_OFFSET
    .endm

    .section .text.fork, "ax"
    .globl fork
    .type fork, @function
fork:
    daddiu $29, $29, -FRAME
    save_all
    jal __fork                  /* (frame) -> thread identity or -1 */
    move $4, $29
    ld $31, 0($29)
    jr $31
    daddiu $29, $29, FRAME
    .size fork, . - fork

    .section .text.__domain_fork, "ax"
    .globl __domain_fork
    .type __domain_fork, @function
__domain_fork:
    daddiu $29, $29, -FRAME
    save_all
    move $5, $4
    jal __domain_fork_frame     /* (frame, handler) -> child's domain or -1 */
    move $4, $29
    ld $31, 0($29)
    jr $31
    daddiu $29, $29, FRAME
    .size __domain_fork, . - __domain_fork

/* The child's thread: on the frame, in the copy of the stack. */
    .section .text.__domain_fork_start, "ax"
    .globl __domain_fork_start
    .type __domain_fork_start, @function
__domain_fork_start:
    load_block
    jal __locks_copied
    nop
    each_saved ld
    li $2, 0
    jr $31
    daddiu $29, $29, FRAME
    .size __domain_fork_start, . - __domain_fork_start

/* The new thread: a0 is the image that __fork made, whose first word is the size of the copy. */
    .section .text.__fork_start, "ax"
    .globl __fork_start
    .type __fork_start, @function
__fork_start:
    li $13, STACK_SLOT - 1
    daddiu $12, $29, -1
    or $12, $12, $13
    daddiu $12, $12, 1          /* top of this stack */
    ld $13, 0($4)
    dsubu $29, $12, $13
    move $17, $4
    jal __fork_copy             /* works below sp; needs no gp */
    move $5, $29
    load_block
    jal free
    move $4, $17
    each_saved ld
    li $2, 0
    jr $31
    daddiu $29, $29, FRAME
    .size __fork_start, . - __fork_start
