# fail Label bad
main:
    testl %eax, %eax
    je 1f
    push %rax
bad:
1:  ret
