# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    xaddq %rcx, %rdx
bad:
    movq %rax, (%rcx)
    ret
