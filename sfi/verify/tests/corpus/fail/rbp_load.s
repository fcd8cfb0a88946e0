# fail DataStackPointer bad
main:
bad:
    movq 8(%rax), %rbp
    ret
