# fail Label bad
main:
    push %rax
    record 1f, depth=2
bad:
1:  pop %rax
    pop %rax
    ret
