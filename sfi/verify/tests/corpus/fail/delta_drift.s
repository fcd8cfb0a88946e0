# fail Label bad
main:
1:  leaq -64(%rbp), %rbp
    decl %eax
bad:
    jne 1b
    leaq 64(%rbp), %rbp
    ret
