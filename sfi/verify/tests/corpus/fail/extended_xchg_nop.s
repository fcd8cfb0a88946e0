# fail Store bad
# 90 is no operation, not xchgl %eax,%eax
main:
    .byte 0x90
    addq %gs:0x10000, %rax
bad:
    movq %rcx, (%rax)
    ret
