# fail Store bad
main:
    movl %edx, %edx
    movl %ecx, %ecx
bad:
    movq %rax, (%rdx,%rcx)
    ret
