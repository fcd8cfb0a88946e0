# fail Label bad
main:
    push %rax
1:  pop %rax
    andl $1, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
2:  ret
.section .rodata
table: .long 1b-table, 2b-table
