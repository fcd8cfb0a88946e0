# fail DataStackPointer bad
# what was pushed before a label may be another function's
main:
    push %rbp
1:  incl %eax
    jne 1b
bad:
    pop %rbp
    ret
