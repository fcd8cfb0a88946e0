# fail Store bad
main:
    testl %eax, %eax
    je 1f
    confine %ecx, %rcx
bad:
1:  movq %rax, (%rcx)
    ret
