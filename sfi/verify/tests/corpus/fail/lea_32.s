# fail Store bad
# the pointer's upper half is gone
main:
    confine %ecx, %rcx
    leal 8(%rcx), %ecx
bad:
    movq %rax, (%rcx)
    ret
