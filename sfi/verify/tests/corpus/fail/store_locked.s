# fail Store bad
main:
bad:
    lock incl (%rax)
    ret
