# fail Target jump
main:
    andl $1, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
jump: jmp *%rax
lab:
1:  movl $0xc3, %eax
    ret
.section .rodata
table: .long 1b-table, 1b+1-table
