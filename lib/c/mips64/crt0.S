/*
 * Where threads come in: at the start, by thread_create, and through a portal from another domain.
 *
 * Whoever starts a thread gives it a stack pointer and nothing else. Its thread-local block (errno and the like)
 * lies at the top of what it uses of that stack; the thread pointer, gp, is PEBBLE_TP_OFFSET above the block's lowest
 * word. A call through a portal arrives with somebody else's gp, so it gets a block of its own for as long as it
 * lasts. No delay slot is filled by the assembler.
 */
#include "../internal.h"

    .globl __image_va
    .set __image_va, IMAGE_VA
    .set noreorder
    .set noat

    .section .text.crt0, "ax"
/* Makes the thread-local block. Returns to $25; changes sp, gp, $1, $13 to $15 and $24 only. */
    .globl __pebble_tls
    .type __pebble_tls, @function
__pebble_tls:
    daddiu $29, $29, -STACK_HEAD
    lui $13, %hi(__tls_size)
    daddiu $13, $13, %lo(__tls_size)
    dsubu $14, $29, $13
    sd $14, STACK_HEAD - 8($29)
    daddiu $29, $14, -CONTROL_BYTES
    sd $0, CONTROL_MODE($14)
    sd $0, CONTROL_STATUS($14)
    ld $15, CONTROL_TURN($14)
    daddiu $15, $15, 1
    sd $15, CONTROL_TURN($14)
    daddiu $28, $14, PEBBLE_TP_OFFSET
    daddu $13, $13, $14         /* $13: end of the block */
    lui $15, %hi(__tbss_offset)
    daddiu $15, $15, %lo(__tbss_offset)
    daddu $15, $15, $14         /* $15: end of its initialised part */
    lui $24, %hi(__tdata_start)
    b 2f
    daddiu $24, $24, %lo(__tdata_start)
1:  ld $1, 0($24)
    sd $1, 0($14)
    daddiu $24, $24, 8
    daddiu $14, $14, 8
2:  sltu $1, $14, $15
    bnez $1, 1b
    nop
    b 4f
    nop
3:  sd $0, 0($14)
    daddiu $14, $14, 8
4:  sltu $1, $14, $13
    bnez $1, 3b
    nop
    jr $25
    nop
    .size __pebble_tls, . - __pebble_tls

    .macro make_block
    lui $1, %hi(__pebble_tls)
    daddiu $1, $1, %lo(__pebble_tls)
    jalr $25, $1
    nop
    .endm

    .globl _start
    .type _start, @function
_start:
    make_block
    j __pebble_start
    nop
    .size _start, . - _start

/* A thread made by thread_create: a0 is its record. */
    .section .text.__thread_start, "ax"
    .globl __thread_start
    .type __thread_start, @function
__thread_start:
    make_block
    j __thread_main
    nop
    .size __thread_start, . - __thread_start

/*
 * A call from another domain for the function in $12, with the words in $4 to $9. The caller's gp comes back as it was
 * (an `m` portal trusts us to keep it). The further result words leave in $6 to $11; the portal clears those
 * that the specification does not name.
 */
    .section .text.__pebble_enter, "ax"
    .globl __pebble_enter
    .type __pebble_enter, @function
__pebble_enter:
    daddiu $29, $29, -32
    sd $31, 0($29)
    sd $16, 8($29)
    sd $28, 16($29)
    sd $0, 24($29)              /* a handler's block, if there was one on this stack, is overwritten */
    move $16, $29
    make_block
    jalr $12
    nop
    lui $12, %tprel_hi(portal_results)
    daddu $12, $12, $28
    daddiu $12, $12, %tprel_lo(portal_results)
    ld $6, 0($12)
    ld $7, 8($12)
    ld $8, 16($12)
    ld $9, 24($12)
    ld $10, 32($12)
    ld $11, 40($12)
    move $29, $16
    ld $31, 0($29)
    ld $16, 8($29)
    ld $28, 16($29)
    jr $31
    daddiu $29, $29, 32
    .size __pebble_enter, . - __pebble_enter

/* Entries for functions registered at run time: entry n, 8 bytes each, looks up function n. */
    .section .text.__pebble_entries, "ax"
    .globl __pebble_entries
    .balign 8
__pebble_entries:
    .set n, 0
    .rept 32
    b 1f
    daddiu $12, $0, n * 8
    .set n, n + 1
    .endr
1:  lui $13, %hi(__pebble_functions)
    daddu $12, $12, $13
    j __pebble_enter
    ld $12, %lo(__pebble_functions)($12)
    .size __pebble_entries, . - __pebble_entries
