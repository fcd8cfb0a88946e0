# fail Instruction bad
main:
bad:
    .byte 0xc1, 0xf0, 0x01
    ret
