# fail Instruction bad
main:
bad:
    paddd %mm1, %mm0
    ret
