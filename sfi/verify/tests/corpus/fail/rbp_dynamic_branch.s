# fail Dynamic bad
main:
    push %rbp
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    testl %eax, %eax
bad:
    je 1f
    pop %rbp
    ret
1:  ud2
