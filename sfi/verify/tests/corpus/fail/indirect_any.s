# fail Indirect bad
main:
bad:
    jmp *%rax
