# fail Store bad
# an implicit result
main:
    confine %eax, %rax
    cltq
bad:
    movq %rcx, (%rax)
    ret
