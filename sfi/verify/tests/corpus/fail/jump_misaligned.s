# fail Target bad
main:
    xorl %eax, %eax
bad:
    jne 1f + 1
1:  movl $0xc3050f90, %eax
    ret
