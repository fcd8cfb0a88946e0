# fail Delta bad
main:
    leaq -64(%rbp), %rbp
bad:
    ret
