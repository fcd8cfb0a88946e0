# fail Prefix bad
main:
bad:
    .byte 0x66, 0xc3
    ret
