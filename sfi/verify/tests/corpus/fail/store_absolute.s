# fail Store bad
main:
bad:
    movq %rax, 0x1000
    ret
