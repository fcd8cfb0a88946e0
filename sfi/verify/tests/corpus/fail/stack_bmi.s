# fail StackPointer bad
main:
bad:
    blsrq %rax, %rsp
    ret
