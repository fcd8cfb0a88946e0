# fail Instruction bad
main:
bad:
    rdrand %rax
    ret
