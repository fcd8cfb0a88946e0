# fail Instruction bad
main:
bad:
    .byte 0x3e, 0xff, 0xe0
    ret
