# fail StackPointer bad
main:
bad:
    movb %al, %spl
    ret
