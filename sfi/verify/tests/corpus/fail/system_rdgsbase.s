# fail Instruction bad
main:
bad:
    rdgsbase %rax
    ret
