# level full
# a byte, zero-extended, is less than 256: no mask is needed
main:
    movzbl %sil, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
    jmp *%rax
1:  movzbl %ah, %edx
    leaq table(%rip), %rcx
    movslq (%rcx,%rdx,4), %rdx
    ret
.section .rodata
table: .rept 256
    .long 1b-table
.endr
