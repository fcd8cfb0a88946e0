# fail DataStackPointer bad
main:
bad:
    xchgq %rax, %rbp
    ret
