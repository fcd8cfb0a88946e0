# fail Instruction bad
main:
bad:
    iretq
