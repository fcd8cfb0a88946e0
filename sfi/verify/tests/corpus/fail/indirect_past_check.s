# fail Indirect bad
main:
    testl %ecx, %ecx
    je 1f
    andl $FTAB_MASK, %eax
1:  addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
