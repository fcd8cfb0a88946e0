# fail StackPointer bad
main:
bad:
    addq $8, %rsp
    ret
