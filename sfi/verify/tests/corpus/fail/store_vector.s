# fail Store bad
main:
bad:
    vmovups %ymm0, (%rax)
    ret
