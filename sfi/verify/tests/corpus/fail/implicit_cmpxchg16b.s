# fail Store bad
# an implicit result
main:
    confine %edx, %rdx
    cmpxchg16b (%rbp)
bad:
    movq %rcx, (%rdx)
    ret
