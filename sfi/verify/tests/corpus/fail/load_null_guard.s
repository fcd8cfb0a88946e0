# fail Load bad
# level full
main:
bad:
    movq 0x10000, %rax
    ret
