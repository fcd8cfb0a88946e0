# fail Instruction bad
main:
bad:
    popfq
    ret
