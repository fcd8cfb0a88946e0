# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    mulxq %rax, %rcx, %r8
bad:
    movq %rax, (%rcx)
    ret
