# fail Load bad
# level full
main:
bad:
    cmpb $0, (%rax)
    ret
