# fail DataStackPointer bad
# popped from a word that holds something else
main:
    push %rbp
    push %rax
bad:
    pop %rbp
    pop %rax
    ret
