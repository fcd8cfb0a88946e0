# fail Instruction bad
main:
bad:
    vmovups %zmm0, (%rbp)
    ret
