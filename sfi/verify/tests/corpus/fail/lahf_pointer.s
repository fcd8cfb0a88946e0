# fail Store bad
main:
    confine %eax, %rax
    lahf
bad:
    movq %rcx, (%rax)
    ret
