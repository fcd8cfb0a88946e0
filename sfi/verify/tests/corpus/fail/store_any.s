# fail Store bad
main:
bad:
    movq %rax, (%rax)
    ret
