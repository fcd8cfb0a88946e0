# fail Store bad
main:
    jecxz 1f
    confine %ecx, %rcx
bad:
1:  movq %rax, (%rcx)
    ret
