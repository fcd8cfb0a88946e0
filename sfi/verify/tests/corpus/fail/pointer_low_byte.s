# fail Store bad
main:
    confine %ecx, %rcx
    movb $0, %cl
    addq %rdx, %rcx
bad:
    movq %rax, (%rcx)
    ret
