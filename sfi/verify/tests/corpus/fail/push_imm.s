# fail Instruction bad
main:
bad:
    pushq $8
    pop %rax
    ret
