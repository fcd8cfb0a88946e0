# fail String bad
main:
    confine %esi, %rsi
bad:
    rep movsb
    ret
