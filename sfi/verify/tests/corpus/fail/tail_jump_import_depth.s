# fail Depth bad
main:
    push %rax
bad:
    jmp *%gs:0x10100
