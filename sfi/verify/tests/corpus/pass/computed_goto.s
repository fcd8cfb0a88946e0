# pass
main:
    push %rcx
    andl $8, %eax
    leaq slots(%rip), %r11
    addq %r11, %rax
    jmp *%rax
.balign 16, 0xcc
slots:
    jmp 3f
.balign 8, 0xcc
    jmp 3f
.balign 8, 0xcc
3:  pop %rcx
    ret
