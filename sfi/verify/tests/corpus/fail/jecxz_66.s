# fail Prefix bad
main:
bad:
    .byte 0x66, 0xe3, 0
    ret
