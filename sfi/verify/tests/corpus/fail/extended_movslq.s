# fail Store bad
# the upper half may stay
main:
    movslq %eax, %rcx
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
