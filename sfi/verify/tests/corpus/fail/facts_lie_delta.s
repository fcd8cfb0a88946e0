# fail Label bad
main:
    leaq -64(%rbp), %rbp
    record 1f, delta=-128
bad:
1:  leaq 128(%rbp), %rbp
    ret
