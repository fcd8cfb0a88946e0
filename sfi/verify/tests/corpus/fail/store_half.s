# fail Store bad
main:
bad:
    vcvtps2ph $0, %ymm0, (%rcx)
    ret
