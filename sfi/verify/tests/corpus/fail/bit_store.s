# fail Instruction bad
# a register bit index reaches anywhere
main:
bad:
    btsq %rax, 8(%rbp)
    ret
