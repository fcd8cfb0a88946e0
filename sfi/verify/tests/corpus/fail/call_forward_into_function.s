# fail Label bad
main:
    call 1f
    ret
2:  push %rax
bad:
1:  pop %rax
    ret
