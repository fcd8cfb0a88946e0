# fail Record bad
main:
    record 1f, seg=0x20
1:  ret
.set bad, 0
