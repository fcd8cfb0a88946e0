# fail Instruction bad
main:
bad:
    maskmovdqu %xmm1, %xmm0
    ret
