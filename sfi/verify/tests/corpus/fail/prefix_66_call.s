# fail Prefix bad
main:
bad:
    .byte 0x66, 0xe8, 0, 0, 0, 0
    ret
