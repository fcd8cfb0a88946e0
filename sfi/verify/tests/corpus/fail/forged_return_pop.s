# fail Depth bad
# the caller's return address, and on
main:
bad:
    pop %rax
    ret
