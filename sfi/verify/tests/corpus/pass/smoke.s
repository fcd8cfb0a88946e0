# pass: prologue, stack, stores in the five ways, calls, switch, loop
main:
    push %rbx
    push %r12
    leaq -64(%rbp), %rbp
    movl %edi, %ebx
    movq %rax, 8(%rbp)
    movq %rax, %gs:4(%ebx,%ecx,4)
    movq %rax, buf+8(%rip)
    confine %ecx, %rcx
    movq %rax, 64(%rcx)
    movq %gs:0x10000, %r11
    movl %edx, %edx
    movq %rax, 8(%r11,%rdx)
    call helper
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
    call *%rax
    call *%gs:0x10108
    andl $3, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
    jmp *%rax
1:  incl %ebx
    jne 1b
2:  leaq 64(%rbp), %rbp
    pop %r12
    pop %rbx
    ret
helper:
    confine %edi, %rdi
    xorl %eax, %eax
    rep stosb
    push %rbp
    movl %esi, %ebp
    addq %gs:0x10000, %rbp
    call main
    pop %rbp
    ret
.section .rodata
table: .long 1b-table, 2b-table, 1b-table, 1b-table
