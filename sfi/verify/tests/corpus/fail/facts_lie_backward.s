# fail Facts bad
main:
    confine %ecx, %rcx
    record 1f, seg=RCX
1:  movq %rax, (%rcx)
    movq 8(%rcx), %rcx
    testq %rcx, %rcx
bad:
    jne 1b
    ret
