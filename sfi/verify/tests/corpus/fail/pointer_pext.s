# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    pextq %rax, %rdx, %rcx
bad:
    movq %rax, (%rcx)
    ret
