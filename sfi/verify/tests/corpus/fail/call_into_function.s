# fail Callee bad
# the label is inside: one word is pushed there
main:
    push %rax
    xorl %eax, %eax
1:  incl %eax
    jne 1b
    pop %rcx
bad:
    call 1b
    ret
