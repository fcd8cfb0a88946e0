# fail Record bad
main:
    record 1f, depth=1, slots=0x10
1:  ret
.set bad, 0
