# fail Prefix bad
main:
bad:
    .byte 0x67, 0x48, 0xe3, 0
    ret
