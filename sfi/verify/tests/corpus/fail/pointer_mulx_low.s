# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    mulxq %rax, %r8, %rcx
bad:
    movq %rax, (%rcx)
    ret
