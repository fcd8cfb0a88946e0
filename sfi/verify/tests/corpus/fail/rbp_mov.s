# fail DataStackPointer bad
main:
bad:
    movq %rax, %rbp
    ret
