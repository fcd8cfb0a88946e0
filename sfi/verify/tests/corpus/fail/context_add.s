# fail Context bad
main:
bad:
    addq %rax, %gs:0x10000
    ret
