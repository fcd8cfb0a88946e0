# fail Store bad
main:
bad:
    vextracti128 $1, %ymm0, (%rax)
    ret
