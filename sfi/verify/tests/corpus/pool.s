# Instructions for the fuzzer to put anywhere.
main:
    push %rbp
    pop %rbp
    push %rbx
    pop %rbx
    push %rcx
    pop %rcx
    ret
    addq %gs:0x10000, %rcx
    addq %gs:0x10000, %rbp
    addq %gs:0x10000, %rax
    addq %gs:0x10008, %rcx
    movq %gs:0x10000, %rcx
    movq %gs:0x10000, %rdx
    movl %ecx, %ecx
    movl %edx, %edx
    movl %ecx, %ebp
    movq %rcx, %rbp
    movq %rbp, %rcx
    movq %rdx, %rcx
    movq %rcx, %rdx
    xchgq %rcx, %rdx
    xchgl %ecx, %edx
    movq %rax, (%rcx)
    movq %rax, (%rdx)
    movq %rax, 0x7fffffff(%rcx)
    movq %rax, -0x80000000(%rcx)
    movq %rax, 0x7fffffff(%rbp)
    movq %rax, (%rcx,%rdx)
    movq %rax, (%rdx,%rcx)
    movq %rax, 0x7fffffff(%rdx,%rcx)
    movq %rax, (%rcx,%rdx,2)
    movq %rax, %gs:(%ecx,%edx,8)
    movq %rax, %gs:(%rcx)
    vmovups %ymm0, -0x80000000(%rcx)
    vpgatherdd %ymm2, (%rcx,%ymm1,4), %ymm0
    addq $0x7fffffff, %rcx
    addq $0x3fffffff, %rcx
    subq $-0x80000000, %rcx
    addq $8, %rcx
    subq $8, %rcx
    incq %rcx
    leaq 0x10000(%rcx), %rcx
    leaq (%rcx,%rdx), %rcx
    leaq (%rdx,%rcx), %rdx
    leaq (%rdx,%rcx,4), %rdx
    leaq -8(%rbp), %rcx
    leaq -8(%rbp), %rbp
    leaq 8(%rbp), %rbp
    subq $8, %rbp
    addq $8, %rbp
    subq $0x2000, %rbp
    addq $0x2000, %rbp
    movq $0, (%rbp)
    leaq (%rbp), %rbp
    leal -8(%rbp), %ebp
    xorl %ebx, %ebx
    xorl %ecx, %ecx
    movw %ax, %cx
    movb %al, %ch
    movb %al, %cl
    movslq %ecx, %rcx
    shlq $1, %rcx
    cmovel %eax, %ecx
    cmoveq %rax, %rcx
    bsfl %eax, %ecx
    cmpxchgl %edx, %ecx
    mulq %rcx
    divl %ecx
    cltd
    cqto
    rep stosb
    rep movsb
    repne scasb
    movq %rsp, %rax
    movq %rax, %rsp
    syscall
    std
    andl $0x20038, %eax
    andl $0x2003f, %eax
    andl $3, %eax
    andl $8, %eax
    call *%rax
    jmp *%rax
    call *%rcx
    call *%gs:0x10100
    jmp *%gs:0x10118
    call *%gs:0x10120
    lock xaddq %rcx, (%rbp)
    fldt (%rcx)
    fnstsw %ax
    pextrq $1, %xmm0, %rcx
    movd %xmm0, %ecx
    movq %xmm0, %rcx
    shldl %cl, %eax, %ecx
    ud2
    lahf
    sahf
1:  jecxz 1b
2:  jrcxz 2b
    .byte 0x67, 0xe3, 0x02
    .byte 0xe3, 0x02
    bswapq %rcx
    notl %ecx
