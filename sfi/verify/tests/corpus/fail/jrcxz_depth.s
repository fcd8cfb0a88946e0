# fail Label bad
main:
    jrcxz 1f
    push %rbx
bad:
1:  pop %rbx
    ret
