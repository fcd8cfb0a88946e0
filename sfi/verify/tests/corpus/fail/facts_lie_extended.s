# fail Facts bad
main:
    movq %gs:0x10000, %r11
    movq %rsi, %rcx
    record 1f, zx=RCX
bad:
1:  movq %rax, (%r11,%rcx)
    ret
