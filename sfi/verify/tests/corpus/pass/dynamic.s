# pass
main:
    push %r15
    subq $16, %rbp
    push %rbp
    movl -8(%rbp), %eax
    subl $64, %eax
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    movq %rdx, (%rbp)
    call main
    movq %rax, 8(%rbp)
    call *%gs:0x10118
    pop %rbp
    movq %rax, (%rbp)
    addq $16, %rbp
    pop %r15
    ret
