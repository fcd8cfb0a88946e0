# fail Store bad
main:
    leaq -0x60000000(%rbp), %rcx
bad:
    movq %rax, (%rcx)
    ret
