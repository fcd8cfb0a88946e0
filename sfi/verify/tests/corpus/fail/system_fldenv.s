# fail Instruction bad
main:
bad:
    fldenv (%rbp)
    ret
