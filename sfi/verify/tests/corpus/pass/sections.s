# a cold part before its function, reached with a frame
    .globl main
    record 1f, depth=1, delta=-16
1:  movq $0, (%rbp)
    jmp 2f
main:
    push %rbx
    subq $16, %rbp
    testl %eax, %eax
    je 1b
2:  addq $16, %rbp
    pop %rbx
    ret
