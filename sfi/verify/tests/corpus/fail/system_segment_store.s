# fail Instruction bad
main:
bad:
    movw %gs, %ax
    ret
