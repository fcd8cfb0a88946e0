# fail Instruction bad
main:
bad:
    btq %rax, 8(%rbp)
    ret
