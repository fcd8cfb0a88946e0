# fail Store bad
main:
    movq %gs:0x10000, %r11
bad:
    movq %rax, (%r11,%rcx)
    ret
