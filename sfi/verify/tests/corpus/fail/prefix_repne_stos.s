# fail Prefix bad
main:
bad:
    .byte 0xf2, 0xaa
    ret
