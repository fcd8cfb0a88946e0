# fail StackPointer bad
# 32-bit arithmetic would take the stack into the lowest 4 GiB
main:
bad:
    subl $64, %esp
    ret
