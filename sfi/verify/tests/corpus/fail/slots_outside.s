# fail Table bad
main:
    andl $0xfff8, %eax
    leaq FTAB, %r11
    leaq FTAB(%rip), %r11
    andl $0xfff8, %eax
    leaq main-0x40(%rip), %r11
    addq %r11, %rax
bad:
    jmp *%rax
