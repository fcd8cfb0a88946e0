# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    shlq $1, %rcx
bad:
    movq %rax, (%rcx)
    ret
