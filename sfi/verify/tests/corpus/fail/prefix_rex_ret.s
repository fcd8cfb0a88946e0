# fail Prefix bad
main:
bad:
    .byte 0x48, 0xc3
    ret
