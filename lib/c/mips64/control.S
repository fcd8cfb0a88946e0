/*
 * Interposition: where stubs of controlled domains come in, and where a call resumes that changed the own table.
 *
 * A handler is entered with the registers of a stub: the index in $4, the caller's words in $5 to $9, the caller's gp. It
 * runs on a stack of this domain's queue. Its thread-local block, once made, stays there for the next call: only the CONTROL
 * words below it are set anew. So a thread-local variable keeps whatever the last handler on that stack has left.
 *
 * Each handler has two entries, 4 bytes apart: the second is for stubs whose original takes words, gives further results, or a
 * value that may not fit an int. It is in the delay slot of the first, to which it does no harm. Handlers may be declared with int
 * parameters: invoke_portal puts back the words' upper halves if the lower ones have not changed, and so does the return with the
 * value.
 */
#include <pebble.h>
#include "../internal.h"

/* Of a CONTROL word, from gp. */
#define AT(word) (word - PEBBLE_TP_OFFSET)($28)

    .set noreorder
    .set noat

    .macro handler n
    j slim
    daddiu $15, $0, \n * 8
    j full
    nop
    .endm

    .macro function             /* the handler's, into $12 */
    lui $12, %hi(__pebble_handlers)
    daddu $12, $12, $15
    ld $12, %lo(__pebble_handlers)($12)
    .endm

    .macro next_turn            /* of the block in $13 */
    ld $14, CONTROL_TURN($13)
    daddiu $14, $14, 1
    sd $14, CONTROL_TURN($13)
    .endm

    .macro make_block           /* its address, into $13 */
    lui $1, %hi(__pebble_tls)
    daddiu $1, $1, %lo(__pebble_tls)
    jalr $25, $1
    nop
    daddiu $13, $28, -PEBBLE_TP_OFFSET
    .endm

    .section .text.__pebble_handler, "ax"
    .globl __pebble_handler_entries
    .balign 16
__pebble_handler_entries:
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    handler \n
    .endr

slim:
    function
    ld $13, -8($29)             /* the thread-local block of this stack */
    beqz $13, slim_first
    nop
    sd $28, CONTROL_TP($13)
    sd $31, CONTROL_RA($13)
    daddiu $28, $13, PEBBLE_TP_OFFSET
    daddiu $29, $13, -CONTROL_BYTES
    li $14, 1
    sd $14, CONTROL_MODE($13)
    sd $0, CONTROL_STATUS($13)
    next_turn
    jalr $12
    nop
    ld $3, AT(CONTROL_STATUS)
    ld $31, AT(CONTROL_RA)
    jr $31
    ld $28, AT(CONTROL_TP)

slim_first:
    move $10, $28
    make_block
    sd $10, CONTROL_TP($13)
    sd $31, CONTROL_RA($13)
    b 1f
    li $14, 1
full:
    function
    move $10, $28
    ld $13, -8($29)
    bnez $13, 2f
    nop
    make_block
2:  daddiu $28, $13, PEBBLE_TP_OFFSET
    daddiu $29, $13, -CONTROL_BYTES
    sd $10, CONTROL_TP($13)
    sd $31, CONTROL_RA($13)
    sd $5, CONTROL_WORDS($13)
    sd $6, CONTROL_WORDS+8($13)
    sd $7, CONTROL_WORDS+16($13)
    sd $8, CONTROL_WORDS+24($13)
    sd $9, CONTROL_WORDS+32($13)
    li $14, 2
1:  sd $14, CONTROL_MODE($13)
    next_turn
    sd $0, CONTROL_STATUS($13)
    sd $0, CONTROL_VALUE($13)
    sd $0, CONTROL_RESULTS($13)
    sd $0, CONTROL_RESULTS+8($13)
    sd $0, CONTROL_RESULTS+16($13)
    sd $0, CONTROL_RESULTS+24($13)
    sd $0, CONTROL_RESULTS+32($13)
    jalr $12
    sd $0, CONTROL_RESULTS+40($13)
    ld $12, AT(CONTROL_VALUE)
    xor $13, $12, $2
    sll $13, $13, 0
    movz $2, $12, $13
    ld $6, AT(CONTROL_RESULTS)
    ld $7, AT(CONTROL_RESULTS+8)
    ld $8, AT(CONTROL_RESULTS+16)
    ld $9, AT(CONTROL_RESULTS+24)
    ld $10, AT(CONTROL_RESULTS+32)
    ld $11, AT(CONTROL_RESULTS+40)
    ld $3, AT(CONTROL_STATUS)
    ld $31, AT(CONTROL_RA)
    jr $31
    ld $28, AT(CONTROL_TP)

/*
 * invoke_portal: for a handler, the call that it was entered for goes on: system portals act on the child, and what comes back beside
 * the value is kept for the handler's return.
 */
    .section .text.invoke_portal, "ax"
    .globl invoke_portal
    .type invoke_portal, @function
invoke_portal:
    dsrl $13, $4, 12            /* no index: what a function returned that failed */
    bnez $13, bad_index
    nop
    ld $13, AT(CONTROL_MODE)
    daddiu $29, $29, -16
    beqz $13, 4f
    sd $31, 8($29)
    sltiu $14, $4, FIRST_FREE
    bnez $14, 3f
    nop
1:  daddiu $13, $13, -1
    bnez $13, 5f
    nop
    bal 2f
    move $12, $4
    sd $3, AT(CONTROL_STATUS)
    ld $31, 8($29)
    bnez $3, 6f
    daddiu $29, $29, 16
    jr $31
    nop
2:  syscall
3:  lui $14, %hi(__pebble_places)
    daddu $14, $14, $4
    lbu $14, %lo(__pebble_places)($14)
    beqz $14, 1b
    lui $15, %hi(__pebble_behalf)
    lw $15, %lo(__pebble_behalf)($15)
    daddiu $4, $14, -1
    b 1b
    daddu $4, $4, $15
4:  daddiu $29, $29, -64
    sd $4, 0($29)
    sd $5, 8($29)
    sd $6, 16($29)
    sd $7, 24($29)
    sd $8, 32($29)
    sd $9, 40($29)
7:  jal portal_call
    nop
    bnez $3, 8f
    nop
9:  daddiu $29, $29, 64
    ld $31, 8($29)
    daddiu $29, $29, 16
6:  move $4, $2
    j __portal_done
    move $5, $3
8:  sd $3, 48($29)              /* not taken place: perhaps once more, with the same words */
    daddiu $5, $29, 8
    jal __again
    move $4, $3
    ld $4, 0($29)
    ld $5, 8($29)
    ld $6, 16($29)
    ld $7, 24($29)
    ld $8, 32($29)
    bnez $2, 7b
    ld $9, 40($29)
    li $2, -1
    b 9b
    ld $3, 48($29)
5:  .macro merge word, at
    ld $14, AT(CONTROL_WORDS+\at)
    xor $15, $14, \word
    sll $15, $15, 0
    movz \word, $14, $15
    .endm
    merge $5, 0
    merge $6, 8
    merge $7, 16
    merge $8, 24
    merge $9, 32
    bal 2b
    move $12, $4
    sd $2, AT(CONTROL_VALUE)
    sd $3, AT(CONTROL_STATUS)
    sd $6, AT(CONTROL_RESULTS)
    sd $7, AT(CONTROL_RESULTS+8)
    sd $8, AT(CONTROL_RESULTS+16)
    sd $9, AT(CONTROL_RESULTS+24)
    sd $10, AT(CONTROL_RESULTS+32)
    sd $11, AT(CONTROL_RESULTS+40)
    ld $31, 8($29)
    bnez $3, 6b
    daddiu $29, $29, 16
    jr $31
    nop
bad_index:
    li $2, -1
    b 6b
    li $3, PORTAL_CLOSED
    .size invoke_portal, . - invoke_portal
    .if NPORTALS - (1 << 12)
    .error "invoke_portal counts on this"
    .endif

/* A call that changed this domain's table resumes here: each change is told, then it goes on as if it had just returned. */
    .section .text.__pebble_detour, "ax"
    .globl __pebble_detour
    .type __pebble_detour, @function
__pebble_detour:
    daddiu $29, $29, -64
    sd $2, 0($29)
    sd $3, 8($29)
    sd $6, 16($29)
    sd $7, 24($29)
    sd $8, 32($29)
    sd $9, 40($29)
    sd $10, 48($29)
    sd $11, 56($29)
1:  li $5, CONTROL_NOTICE
    bal 2f
    li $12, SYS_CONTROL
    blez $2, 3f
    move $4, $9
    move $5, $6
    move $6, $7
    jal __pebble_notice
    move $7, $8
    b 1b
    nop
2:  syscall
3:  move $31, $6
    ld $2, 0($29)
    ld $3, 8($29)
    ld $6, 16($29)
    ld $7, 24($29)
    ld $8, 32($29)
    ld $9, 40($29)
    ld $10, 48($29)
    ld $11, 56($29)
    jr $31
    daddiu $29, $29, 64
    .size __pebble_detour, . - __pebble_detour
