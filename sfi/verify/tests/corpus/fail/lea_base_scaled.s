# fail Store bad
main:
    movq %gs:0x10000, %r11
    movl %ecx, %ecx
    leaq (%r11,%rcx,2), %rcx
bad:
    movq %rax, (%rcx)
    ret
