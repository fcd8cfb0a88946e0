# fail Store bad
main:
    confine %ecx, %rcx
bad:
    movq %rax, (%rcx,%rdx)
    ret
