# fail Instruction bad
main:
bad:
    lldt %ax
    ret
