# fail DataStackPointer bad
main:
bad:
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    ud2
