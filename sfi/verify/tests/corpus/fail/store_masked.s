# fail Store bad
main:
bad:
    vpmaskmovd %ymm0, %ymm1, (%rax)
    ret
