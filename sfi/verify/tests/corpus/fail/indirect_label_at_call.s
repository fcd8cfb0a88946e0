# fail Indirect bad
main:
    testl %ecx, %ecx
    je 1f
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
1:
bad:
    call *%rax
    ret
