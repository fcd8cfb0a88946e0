# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    negq %rcx
bad:
    movq %rax, (%rcx)
    ret
