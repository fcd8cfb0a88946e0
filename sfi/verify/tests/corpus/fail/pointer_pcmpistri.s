# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    pcmpistri $0, %xmm0, %xmm1
bad:
    movq %rax, (%rcx)
    ret
