# fail DataStackPointer bad
main:
bad:
    andq $-32, %rbp
    ret
