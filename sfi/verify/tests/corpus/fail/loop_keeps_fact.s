# fail Store bad
# a label without a record has no facts
main:
    confine %ecx, %rcx
bad:
1:  movq %rax, (%rcx)
    addq $8, %rcx
    jne 1b
    ret
