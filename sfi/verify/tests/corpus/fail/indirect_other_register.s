# fail Indirect bad
main:
    andl $FTAB_MASK, %eax
    addq %gs:0x10000, %rax
bad:
    call *%rcx
    ret
