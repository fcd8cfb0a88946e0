# fail DataStackPointer bad
main:
bad:
    addq %rax, %rbp
    ret
