# fail Store bad
main:
bad:
    fnstcw (%rax)
    ret
