# fail Store bad
main:
    movl %ecx, %ecx
    subq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
