# fail Prefix bad
main:
bad:
    .byte 0x65, 0xa4
    ret
