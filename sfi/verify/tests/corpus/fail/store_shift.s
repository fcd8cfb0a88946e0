# fail Store bad
main:
bad:
    shll %cl, (%rcx)
    ret
