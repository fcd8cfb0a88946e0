# fail Instruction bad
main:
bad:
    swapgs
    ret
