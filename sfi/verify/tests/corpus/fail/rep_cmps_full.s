# fail String bad
# level full
main:
    confine %edi, %rdi
bad:
    repe cmpsb
    ret
