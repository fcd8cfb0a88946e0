# fail Store bad
main:
    testl %eax, %eax
    je 1f
    movl %ecx, %ecx
1:  addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
