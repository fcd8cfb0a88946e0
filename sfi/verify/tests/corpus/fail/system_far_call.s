# fail Instruction bad
main:
bad:
    lcall *(%rax)
    ret
