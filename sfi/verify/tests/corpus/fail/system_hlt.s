# fail Instruction bad
main:
bad:
    hlt
    ret
