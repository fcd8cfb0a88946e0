# fail String bad
main:
bad:
    rep stosb
    ret
