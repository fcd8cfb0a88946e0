# fail Dynamic bad
main:
    push %rbp
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    pop %rax
bad:
    ret
