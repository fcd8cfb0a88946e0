# fail Instruction bad
main:
bad:
    ret $16
