# fail Indirect bad
main:
    andw $56, %ax
    addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
