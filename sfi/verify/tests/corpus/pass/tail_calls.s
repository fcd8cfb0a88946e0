# pass
main:
    testl %eax, %eax
    je other
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
    jmp *%rax
other:
    jmp *%gs:0x10100
unused:
    push %rbx
    pop %rbx
    jmp main
