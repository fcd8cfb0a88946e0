# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    cvtsd2si %xmm0, %rcx
bad:
    movq %rax, (%rcx)
    ret
