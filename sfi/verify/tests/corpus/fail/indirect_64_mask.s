# fail Indirect bad
# the 64-bit form keeps more
main:
    andq $FTAB_MASK, %rax
    addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
