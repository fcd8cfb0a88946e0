# fail Store bad
main:
    movw %cx, %cx
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
