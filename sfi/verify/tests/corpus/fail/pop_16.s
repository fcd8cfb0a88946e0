# fail Prefix bad
main:
    push %rax
bad:
    popw %ax
    ret
