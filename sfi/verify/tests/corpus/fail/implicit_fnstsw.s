# fail Store bad
# an implicit result
main:
    confine %eax, %rax
    fnstsw %ax
bad:
    movq %rcx, (%rax)
    ret
