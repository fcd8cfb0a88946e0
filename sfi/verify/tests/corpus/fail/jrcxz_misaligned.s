# fail Target bad
main:
bad:
    .byte 0xe3, 1
    movl $0x050f, %eax
    ret
