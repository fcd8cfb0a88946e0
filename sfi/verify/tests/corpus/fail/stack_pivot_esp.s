# fail StackPointer bad
main:
bad:
    movl %eax, %esp
    ret
