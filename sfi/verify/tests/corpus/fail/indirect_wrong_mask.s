# fail Indirect bad
main:
    andl $(FTAB_MASK + 7), %eax
    addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
