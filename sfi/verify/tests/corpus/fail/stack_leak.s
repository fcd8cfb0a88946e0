# fail StackPointer bad
main:
bad:
    movq %rsp, %rax
    ret
