# fail StackPointer bad
# forging the return address
main:
bad:
    movq %rax, (%rsp)
    ret
