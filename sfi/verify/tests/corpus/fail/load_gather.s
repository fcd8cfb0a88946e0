# fail Load bad
# level full
main:
    confine %eax, %rax
bad:
    vpgatherdd %ymm2, (%rax,%ymm1,4), %ymm0
    ret
