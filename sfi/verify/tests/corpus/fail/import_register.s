# fail Import bad
main:
bad:
    call *%gs:0x10100(%rax)
    ret
