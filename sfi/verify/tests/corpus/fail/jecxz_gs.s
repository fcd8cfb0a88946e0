# fail Prefix bad
main:
bad:
    .byte 0x65, 0x67, 0xe3, 0
    ret
