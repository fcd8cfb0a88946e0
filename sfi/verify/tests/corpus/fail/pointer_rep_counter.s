# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    confine %edi, %rdi
    rep stosb
bad:
    movq %rax, (%rcx)
    ret
