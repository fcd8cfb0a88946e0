# fail DataStackPointer bad
main:
    push %rbp
    movl %eax, %ebp
bad:
    nop
    addq %gs:0x10000, %rbp
    pop %rbp
    ret
