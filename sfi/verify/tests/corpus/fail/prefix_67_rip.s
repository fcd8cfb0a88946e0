# fail Prefix bad
main:
bad:
    .byte 0x65, 0x67, 0x89, 0x05, 0, 0, 0, 0
    ret
