# fail Instruction bad
main:
bad:
    .byte 0xf7, 0xc8, 1, 0, 0, 0
    ret
