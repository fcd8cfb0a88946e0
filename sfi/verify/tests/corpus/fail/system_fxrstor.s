# fail Instruction bad
main:
bad:
    fxrstor (%rbp)
    ret
