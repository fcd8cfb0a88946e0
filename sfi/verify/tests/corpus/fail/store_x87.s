# fail Store bad
main:
bad:
    fstpt (%rax)
    ret
