# fail Instruction bad
main:
bad:
    std
    ret
