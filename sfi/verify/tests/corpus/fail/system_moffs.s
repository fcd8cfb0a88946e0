# fail Instruction bad
main:
bad:
    movabsq %rax, 0x1122334455667788
    ret
