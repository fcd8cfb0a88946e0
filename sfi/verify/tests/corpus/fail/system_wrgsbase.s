# fail Instruction bad
main:
bad:
    wrgsbase %rax
    ret
