# fail Store bad
main:
    movl %gs:0x10000, %r11d
    movl %ecx, %ecx
bad:
    movq %rax, (%r11,%rcx)
    ret
