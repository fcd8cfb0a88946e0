# fail Dynamic bad
# a branch may come between the two halves
main:
    push %rbp
    movl %eax, %ebp
bad:
1:  addq %gs:0x10000, %rbp
    pop %rbp
    je 1b
    ret
