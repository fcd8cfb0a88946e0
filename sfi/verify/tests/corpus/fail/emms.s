# fail Instruction bad
main:
bad:
    emms
    ret
