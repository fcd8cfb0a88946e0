# fail Store bad
# each addition alone is less than the guard zone
main:
    confine %ecx, %rcx
    addq $0x30000000, %rcx
    addq $0x30000000, %rcx
bad:
    movq %rax, (%rcx)
    ret
