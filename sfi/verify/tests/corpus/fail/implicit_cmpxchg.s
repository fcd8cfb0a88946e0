# fail Store bad
# an implicit result
main:
    confine %eax, %rax
    cmpxchgq %rcx, (%rbp)
bad:
    movq %rcx, (%rax)
    ret
