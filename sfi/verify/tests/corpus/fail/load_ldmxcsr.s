# fail Load bad
# level full
main:
bad:
    ldmxcsr (%rax)
    ret
