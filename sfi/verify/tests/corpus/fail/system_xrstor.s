# fail Instruction bad
main:
bad:
    xrstor (%rbp)
    ret
