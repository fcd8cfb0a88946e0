# fail Context bad
main:
bad:
    movq %gs:-8, %rax
    ret
