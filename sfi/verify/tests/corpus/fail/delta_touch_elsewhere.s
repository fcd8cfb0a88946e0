# fail Untouched bad
main:
    subq $8192, %rbp
bad:
    movq %rax, 8000(%rbp)
    addq $8192, %rbp
    ret
