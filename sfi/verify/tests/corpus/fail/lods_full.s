# fail String bad
# level full
main:
bad:
    lodsb
    ret
