# fail Record bad
main:
    record 1f, delta=8
1:  ret
.set bad, 0
