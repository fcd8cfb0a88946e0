# fail Prefix bad
main:
bad:
    .byte 0x67, 0xaa
    ret
