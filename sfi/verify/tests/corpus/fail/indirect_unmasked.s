# fail Indirect bad
main:
    movl %eax, %eax
    addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
