# fail Store bad
# an implicit result
main:
    confine %eax, %rax
    lodsq
bad:
    movq %rcx, (%rax)
    ret
