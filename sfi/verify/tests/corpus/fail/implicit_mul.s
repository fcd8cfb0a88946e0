# fail Store bad
# an implicit result
main:
    confine %edx, %rdx
    mulq %rcx
bad:
    movq %rcx, (%rdx)
    ret
