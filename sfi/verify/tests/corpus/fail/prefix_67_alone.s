# fail Prefix bad
main:
bad:
    .byte 0x67, 0x89, 0x00
    ret
