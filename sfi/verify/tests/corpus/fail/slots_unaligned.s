# fail Table bad
main:
    andl $8, %eax
    leaq slots(%rip), %r11
    addq %r11, %rax
bad:
    jmp *%rax
.balign 16
    nop
slots:
    jmp main
    int3
    int3
    int3
    ud2
