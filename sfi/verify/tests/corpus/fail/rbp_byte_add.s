# fail DataStackPointer bad
# REX.W on a byte operation: still only bpl
main:
bad:
    .byte 0x48, 0x80, 0xc5, 0xf0
    ret
