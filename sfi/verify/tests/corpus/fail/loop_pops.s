# fail Label bad
# each round would take one word more
main:
    push %rax
    push %rax
1:  pop %rcx
    decl %eax
bad:
    jne 1b
    pop %rcx
    ret
