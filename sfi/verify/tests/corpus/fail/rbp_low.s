# fail DataStackPointer bad
main:
bad:
    movb $0, %bpl
    ret
