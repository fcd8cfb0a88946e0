# fail Store bad
main:
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
