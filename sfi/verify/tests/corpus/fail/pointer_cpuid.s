# fail Store bad
# the write makes rcx any address
main:
    confine %ecx, %rcx
    cpuid
bad:
    movq %rax, (%rcx)
    ret
