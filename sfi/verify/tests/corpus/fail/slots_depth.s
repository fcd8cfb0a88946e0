# fail Label bad
main:
    push %rcx
    andl $8, %eax
    leaq slots(%rip), %r11
    addq %r11, %rax
    jmp *%rax
.balign 16, 0xcc
slots:
bad:
    jmp main
.balign 8, 0xcc
    ud2
.balign 8, 0xcc
