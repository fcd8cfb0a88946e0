# fail StackPointer bad
main:
bad:
    cmoveq %rax, %rsp
    ret
