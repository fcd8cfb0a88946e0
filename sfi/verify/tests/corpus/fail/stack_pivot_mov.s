# fail StackPointer bad
main:
bad:
    movq %rax, %rsp
    ret
