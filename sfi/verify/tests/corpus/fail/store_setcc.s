# fail Store bad
main:
bad:
    sete (%rax)
    ret
