# fail Context bad
main:
bad:
    movq %gs:0x10010, %rax
    ret
