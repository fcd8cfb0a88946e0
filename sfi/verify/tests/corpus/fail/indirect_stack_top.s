# fail Indirect bad
main:
    andl $FTAB_MASK, %eax
    addq %gs:0x10008, %rax
bad:
    call *%rax
    ret
