# fail Instruction bad
main:
bad:
    leave
    ret
