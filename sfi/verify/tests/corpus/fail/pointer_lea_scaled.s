# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    leaq (,%rcx,2), %rcx
bad:
    movq %rax, (%rcx)
    ret
