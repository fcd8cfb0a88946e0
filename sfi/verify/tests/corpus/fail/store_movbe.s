# fail Store bad
main:
bad:
    movbel %eax, (%rcx)
    ret
