# fail Instruction bad
main:
    push %rax
bad:
    popq 8(%rbp)
    ret
