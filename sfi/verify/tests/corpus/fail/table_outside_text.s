# fail Table bad
main:
    andl $1, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
1:  ret
.section .rodata
table: .long 1b-table, rodata-table
