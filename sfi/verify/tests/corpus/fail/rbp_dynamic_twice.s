# fail DataStackPointer bad
main:
    push %rbp
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
bad:
    leaq -64(%rbp), %rbp
    pop %rbp
    ret
