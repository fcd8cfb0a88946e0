# fail Store bad
main:
    movl %ecx, %ecx
    movb %al, %ch
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
