# fail Label bad
main:
    leaq -64(%rbp), %rbp
bad:
    jmp main
