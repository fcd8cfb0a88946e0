# fail Instruction bad
main:
bad:
    movq %fs:0, %rax
    ret
