# fail Indirect bad
# the upper bits stay
main:
    movzbw %al, %ax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
1:  ret
.section .rodata
table: .rept 256
    .long 1b-table
.endr
