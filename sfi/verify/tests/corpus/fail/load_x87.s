# fail Load bad
# level full
main:
bad:
    fldt (%rax)
    ret
