# fail Instruction bad
main:
bad:
    pushq 8(%rax)
    pop %rax
    ret
