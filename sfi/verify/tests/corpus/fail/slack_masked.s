# fail Store bad
# a masked store may not happen, and proves nothing
main:
    confine %ecx, %rcx
    addq $0x20000000, %rcx
    vmaskmovps %ymm0, %ymm1, (%rcx)
    addq $0x30000000, %rcx
bad:
    movq %rax, (%rcx)
    ret
