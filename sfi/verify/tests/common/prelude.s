# Every case: an ftab of 8 slots, of which the first leads to `main`; 4 imports; some data.
.set FTAB, 0x20000
.set FTAB_MASK, 0x20000 + 64 - 8
# A record: address, depth, words pushed (nibbles), delta, registers in segment, zero-extended, base.
.macro record at, depth=0, slots=0, delta=0, seg=0, zx=0, base=0
    .pushsection .pbl.facts, "a"
    .long \at, (\depth << 28) | \slots, \delta
    .short \seg, \zx, \base, 0
    .popsection
.endm
.set RAX, 1
.set RCX, 2
.set RDX, 4
.set RBX, 8
.set RSI, 0x40
.set RDI, 0x80
.set R8, 0x100
.set R9, 0x200
# Makes `reg` (64 bits), whose lower half is `low`, a pointer.
.macro confine low, reg
    movl \low, \low
    addq %gs:0x10000, \reg
.endm
.section .pbl.ftab, "ax"
    jmp main
    .byte 0xcc, 0xcc, 0xcc
.rept 7
    ud2
    .byte 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc
.endr
.section .rodata, "a"
rodata: .quad 0
.data
buf: .zero 4096
.text
