# fail Indirect bad
main:
bad:
    jmp *8(%rbp)
