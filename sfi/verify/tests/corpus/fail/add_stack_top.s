# fail Store bad
main:
    movl %ecx, %ecx
    addq %gs:0x10008, %rcx
bad:
    movq %rax, (%rcx)
    ret
