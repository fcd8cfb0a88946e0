# fail Context bad
main:
bad:
    movq %rax, %gs:0x10000
    ret
