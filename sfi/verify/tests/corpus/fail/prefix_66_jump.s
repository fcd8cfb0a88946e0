# fail Prefix bad
main:
bad:
    .byte 0x66, 0xe9, 0, 0, 0, 0
    ret
