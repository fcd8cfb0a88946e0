# fail Store bad
# an implicit result
main:
    confine %edx, %rdx
    cqto
bad:
    movq %rcx, (%rdx)
    ret
