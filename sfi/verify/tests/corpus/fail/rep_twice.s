# fail String bad
# the first one walked to the guard zone
main:
    confine %edi, %rdi
    rep stosb
bad:
    rep stosb
    ret
