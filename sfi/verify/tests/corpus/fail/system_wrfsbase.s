# fail Instruction bad
main:
bad:
    wrfsbase %rax
    ret
