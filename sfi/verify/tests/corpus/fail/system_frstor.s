# fail Instruction bad
main:
bad:
    frstor (%rbp)
    ret
