# fail Store bad
# an implicit result
main:
    confine %edx, %rdx
    rdtsc
bad:
    movq %rcx, (%rdx)
    ret
