# fail DataStackPointer bad
main:
bad:
    addl $8, %ebp
    ret
