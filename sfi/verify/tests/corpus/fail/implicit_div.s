# fail Store bad
# an implicit result
main:
    confine %eax, %rax
    divq %rcx
bad:
    movq %rcx, (%rax)
    ret
