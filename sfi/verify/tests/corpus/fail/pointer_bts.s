# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    btsq $62, %rcx
bad:
    movq %rax, (%rcx)
    ret
