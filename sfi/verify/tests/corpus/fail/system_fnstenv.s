# fail Instruction bad
main:
bad:
    fnstenv (%rbp)
    ret
