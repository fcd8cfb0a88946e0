# fail Load bad
# level full
main:
bad:
    prefetcht0 (%rax)
    ret
