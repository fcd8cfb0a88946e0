# fail Store bad
main:
    movl %ecx, %ecx
bad:
    movq %rax, (%rbp,%rcx)
    ret
