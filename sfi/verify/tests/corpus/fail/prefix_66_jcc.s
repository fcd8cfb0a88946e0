# fail Instruction bad
main:
bad:
    .byte 0x66, 0x0f, 0x84, 0, 0, 0, 0
    ret
