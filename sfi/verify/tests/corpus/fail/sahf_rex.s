# fail Prefix bad
main:
bad:
    .byte 0x48, 0x9e
    ret
