# fail Store bad
main:
bad:
    notq (%rcx)
    ret
