# fail Label bad
# the exports' code is `main`, which a branch reaches with a word pushed
    push %rax
bad:
    jmp main
main:
    pop %rax
    ret
