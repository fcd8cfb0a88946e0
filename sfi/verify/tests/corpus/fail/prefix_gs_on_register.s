# fail Prefix bad
main:
bad:
    .byte 0x65, 0x89, 0xc0
    ret
