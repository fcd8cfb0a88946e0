# fail Store bad
# the upper half may stay
main:
    bsrl %eax, %ecx
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
