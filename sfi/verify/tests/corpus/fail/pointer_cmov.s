# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    cmoveq %rax, %rcx
bad:
    movq %rax, (%rcx)
    ret
