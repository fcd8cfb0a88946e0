# fail Delta bad
main:
bad:
    leaq 64(%rbp), %rbp
    leaq -64(%rbp), %rbp
    ret
