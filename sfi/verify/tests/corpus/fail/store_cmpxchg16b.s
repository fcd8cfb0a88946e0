# fail Store bad
main:
bad:
    lock cmpxchg16b (%rcx)
    ret
