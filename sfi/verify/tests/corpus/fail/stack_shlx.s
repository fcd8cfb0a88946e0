# fail StackPointer bad
main:
bad:
    shlxq %rax, %rdx, %rsp
    ret
