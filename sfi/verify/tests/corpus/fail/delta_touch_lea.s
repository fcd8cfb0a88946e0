# fail Untouched bad
main:
    subq $8192, %rbp
bad:
    leaq (%rbp), %rax
    addq $8192, %rbp
    ret
