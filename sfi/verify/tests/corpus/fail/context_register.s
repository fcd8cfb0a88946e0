# fail Context bad
main:
bad:
    movq %gs:(%rax), %rax
    ret
