# fail Dynamic bad
# a table that has been read from the same depth and delta is not read again; but now nobody knows where rbp is
.section .rodata
table: .long 3f - table, 3f - table
.macro switch
    andl $1, %ecx
    leaq table(%rip), %rdx
    movslq (%rdx,%rcx,4), %rsi
    addq %rdx, %rsi
.endm
.text
main:
    push %rbp
    testl %eax, %eax
    je 2f
    switch
    jmp *%rsi
2:  pop %rdx
    push %rbp
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    switch
bad:
    jmp *%rsi
3:  pop %rax
    ret
