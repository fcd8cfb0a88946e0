# fail Store bad
main:
    confine %ecx, %rcx
    call *%gs:0x10100
bad:
    movq %rax, (%rcx)
    ret
