# fail StackPointer bad
main:
    push %rax
bad:
    pop %rsp
    ret
