# fail Instruction bad
main:
bad:
    movq %rax, %fs:(%eax)
    ret
