# fail Prefix bad
main:
bad:
    .byte 0xf3, 0xc3
    ret
