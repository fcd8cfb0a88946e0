# fail Facts bad
# the label's record promises what the jump does not keep
main:
    confine %ecx, %rcx
    andl $1, %eax
    leaq table(%rip), %r11
    movslq (%r11,%rax,4), %rax
    addq %r11, %rax
bad:
    jmp *%rax
    record 1f, seg=RCX
1:  movq %rax, (%rcx)
    ret
.section .rodata
table: .long 1b-table, 1b-table
