# fail DataStackPointer bad
main:
    push %rbp
    pop %rax
    push %rax
bad:
    pop %rbp
    ret
