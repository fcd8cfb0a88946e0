# fail Store bad
# lahf writes ah only: what is above stays, but nobody promises it for the whole.
main:
    movl %eax, %eax
    lahf
    addq %gs:0x10000, %rax
bad:
    movq %rcx, (%rax)
    ret
