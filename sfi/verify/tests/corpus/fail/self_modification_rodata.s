# fail Store bad
main:
bad:
    movq %rax, rodata(%rip)
    ret
