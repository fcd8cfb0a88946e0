# fail Context bad
main:
bad:
    movq %rax, %gs:(%rcx)
    ret
