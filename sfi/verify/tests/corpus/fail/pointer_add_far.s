# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    addq $0x7fffffff, %rcx
bad:
    movq %rax, (%rcx)
    ret
