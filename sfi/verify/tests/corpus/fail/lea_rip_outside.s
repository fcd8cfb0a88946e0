# fail Store bad
main:
    leaq 0x7fffff00(%rip), %rcx
bad:
    movq %rax, (%rcx)
    ret
