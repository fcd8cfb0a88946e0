# fail Instruction bad
main:
bad:
    movw %ax, %gs
    ret
