# fail Instruction bad
main:
bad:
    clflush (%rbp)
    ret
