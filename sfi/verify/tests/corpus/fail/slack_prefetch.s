# fail Store bad
main:
    confine %ecx, %rcx
    addq $0x20000000, %rcx
    prefetcht0 (%rcx)
    addq $0x30000000, %rcx
bad:
    movq %rax, (%rcx)
    ret
