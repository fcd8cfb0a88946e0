# fail Prefix bad
main:
bad:
    .byte 0x67, 0x74, 0
    ret
