# fail Store bad
main:
    confine %ecx, %rcx
    call main
bad:
    movq %rax, (%rcx)
    ret
