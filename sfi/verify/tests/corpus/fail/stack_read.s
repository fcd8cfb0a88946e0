# fail StackPointer bad
main:
bad:
    movq 8(%rsp), %rax
    ret
