# fail Store bad
main:
bad:
    pextrb $0, %xmm0, (%rcx)
    ret
