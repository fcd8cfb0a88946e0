# fail String bad
# level full
main:
bad:
    repne scasb
    ret
