# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    sbbq $0, %rcx
bad:
    movq %rax, (%rcx)
    ret
