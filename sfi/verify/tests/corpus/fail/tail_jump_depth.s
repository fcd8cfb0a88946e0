# fail Label bad
main:
    push %rax
bad:
    jmp main
