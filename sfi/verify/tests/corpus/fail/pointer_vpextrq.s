# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    vpextrq $1, %xmm0, %rcx
bad:
    movq %rax, (%rcx)
    ret
