# fail Load bad
# level full
main:
bad:
    movq (%rax), %rax
    ret
