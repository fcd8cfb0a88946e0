# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    imulq $3, %rcx, %rcx
bad:
    movq %rax, (%rcx)
    ret
