# fail Label bad
main:
    andl $1, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
    jmp *%rax
1:  ret
2:  push %rax
bad:
3:  pop %rax
    ret
.section .rodata
table: .long 1b-table, 3b-table
