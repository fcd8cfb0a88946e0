# fail Store bad
main:
    movq %gs:0x10000, %r11
    movl %ecx, %ecx
bad:
    movq %rax, (%r11,%rcx,8)
    ret
