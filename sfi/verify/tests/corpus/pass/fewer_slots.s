# the ways to a label may know of different saved registers: what all know remains
main:
    testl %eax, %eax
    je 1f
    push %rbx
    xorl %ebx, %ebx
    jmp 2f
1:  push %rax
2:  pop %rcx
    ret
