# fail Table bad
# a byte may be 255
main:
    movzbl %al, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
1:  ret
.section .rodata
table: .rept 255
    .long 1b-table
.endr
