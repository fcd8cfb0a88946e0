# level full
main:
    movq buf(%rip), %rax
    movl rodata(%rip), %eax
    movzbl %gs:(%eax,%ecx), %eax
    confine %eax, %rax
    cmpq $0, 32(%rax)
    movq %gs:0x10008, %r11
    movq 8(%rbp), %rdx
    vpgatherdd %ymm2, %gs:(%eax,%ymm1,4), %ymm0
    confine %esi, %rsi
    confine %edi, %rdi
    rep movsb
    confine %esi, %rsi
    confine %edi, %rdi
    repe cmpsb
    movq %gs:0x10000, %r11
    movl %ecx, %ecx
    movsd (%rcx,%r11), %xmm0
    lock xaddl %eax, %gs:4(%ecx)
    andl $1, %eax
    leaq table(%rip), %rdx
    movslq (%rdx,%rax,4), %rcx
    addq %rdx, %rcx
    jmp *%rcx
1:  ret
.section .rodata
table: .long 1b-table, 1b-table
