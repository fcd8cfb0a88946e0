# fail Prefix bad
main:
bad:
    .byte 0x41, 0x90
    ret
