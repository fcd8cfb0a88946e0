# fail Indirect bad
main:
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
    incq %rax
bad:
    call *%rax
    ret
