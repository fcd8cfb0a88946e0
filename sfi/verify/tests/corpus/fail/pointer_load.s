# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    movq (%rcx), %rcx
bad:
    movq %rax, (%rcx)
    ret
