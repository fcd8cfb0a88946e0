# fail Store bad
main:
    confine %ecx, %rcx
    addq $0x40000000, %rcx
bad:
    movq %rax, 0x7fffffff(%rcx)
    ret
