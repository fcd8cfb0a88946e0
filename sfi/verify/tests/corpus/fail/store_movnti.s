# fail Store bad
main:
bad:
    movntiq %rax, (%rcx)
    ret
