# fail Record bad
main:
    record bad
    record bad
bad:
    ret
