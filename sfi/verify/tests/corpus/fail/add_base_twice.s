# fail Store bad
main:
    confine %ecx, %rcx
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
