# fail Load bad
# level full: a switch without its mask
main:
    leaq rodata(%rip), %r11
bad:
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
    jmp *%rax
