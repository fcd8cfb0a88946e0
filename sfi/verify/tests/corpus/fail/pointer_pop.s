# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    push %rax
    pop %rcx
bad:
    movq %rax, (%rcx)
    ret
