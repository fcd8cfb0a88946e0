# fail Record bad
main:
    record bad, seg=RCX
1:  movl $0x12345678, %eax
    ret
.set bad, 1b + 1
