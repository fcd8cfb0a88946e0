# fail Depth bad
main:
    push %rax
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
bad:
    jmp *%rax
