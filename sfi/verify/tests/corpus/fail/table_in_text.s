# fail Table bad
main:
    andl $1, %eax
    leaq main(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
