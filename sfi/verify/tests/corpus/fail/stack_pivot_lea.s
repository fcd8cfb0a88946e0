# fail StackPointer bad
main:
bad:
    leaq 64(%rdi), %rsp
    ret
