# fail Facts bad
main:
    confine %ecx, %rcx
    testl %eax, %eax
    je 1f
    xorl %edx, %edx
    movq %rdx, %rcx
    record 1f, seg=RCX
bad:
1:  movq %rax, (%rcx)
    ret
