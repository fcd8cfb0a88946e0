# fail Record bad
main:
    xorl %eax, %eax
1:  nop
    record 1b
    record bad
bad = main
    ret
