# pass
main:
    subq $0x10000, %rbp
    orq $0, (%rbp)
    call main
    leaq -0x20000(%rbp), %rbp
    movb $0, (%rbp)
    addq $0x30000, %rbp
    ret
