# fail Indirect bad
main:
    .byte 0x80, 0xe0, 0x38
    addq %gs:0x10000, %rax
bad:
    call *%rax
    ret
