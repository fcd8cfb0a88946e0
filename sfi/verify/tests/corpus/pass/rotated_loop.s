# the body is reached only from below: a record says what it is
main:
    push %rbx
    push %r12
    subq $72, %rbp
    movl %edi, %ebx
    jmp 2f
    record 1f, depth=2, slots=0x21, delta=-72, seg=RCX, zx=RDX
1:  movq %rax, (%rcx)
    movl %edx, %edx
    addq $8, %rcx
2:  confine %ecx, %rcx
    movl %eax, %edx
    decl %ebx
    jne 1b
    addq $72, %rbp
    pop %r12
    pop %rbx
    ret
