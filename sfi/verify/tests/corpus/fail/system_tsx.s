# fail Instruction bad
main:
bad:
    xbegin main
    ret
