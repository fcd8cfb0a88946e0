# fail StackPointer bad
main:
bad:
    movq %xmm0, %rsp
    ret
