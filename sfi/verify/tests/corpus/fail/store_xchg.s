# fail Store bad
main:
bad:
    xchgl %eax, (%rcx)
    ret
