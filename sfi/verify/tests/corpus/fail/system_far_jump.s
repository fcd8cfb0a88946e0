# fail Instruction bad
main:
bad:
    ljmp *(%rax)
    ret
