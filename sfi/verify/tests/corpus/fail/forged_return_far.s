# fail Instruction bad
main:
bad:
    lretq
