# fail Instruction bad
main:
bad:
    syscall
    ret
