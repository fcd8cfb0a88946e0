# fail Store bad
# the upper half may stay
main:
    tzcntl %eax, %ecx
    addq %gs:0x10000, %rcx
bad:
    movq %rax, (%rcx)
    ret
