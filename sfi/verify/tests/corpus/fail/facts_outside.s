# fail Record bad
main:
    record bad
    ret
.set bad, rodata
