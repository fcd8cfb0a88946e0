# fail Depth bad
main:
    push %rax
bad:
    ret
