# fail StackPointer bad
main:
bad:
    xchgq %rax, %rsp
    ret
