# fail String bad
# level full
main:
    confine %edi, %rdi
bad:
    rep movsb
    ret
