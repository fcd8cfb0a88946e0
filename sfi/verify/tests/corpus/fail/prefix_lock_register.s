# fail Prefix bad
main:
bad:
    .byte 0xf0, 0x01, 0xc0
    ret
