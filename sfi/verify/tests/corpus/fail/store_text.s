# fail Store bad
main:
bad:
    movq %rax, main(%rip)
    ret
