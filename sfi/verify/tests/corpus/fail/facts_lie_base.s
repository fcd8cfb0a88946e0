# fail Facts bad
main:
    movl %ecx, %ecx
    movq 8(%rbp), %rdx
    record 1f, base=RDX
bad:
1:  movq %rax, (%rdx,%rcx)
    ret
