# fail Target bad
main:
bad:
    call 1f + 1
    ret
1:  movl $0xc3, %eax
    ret
