# fail Facts bad
main:
    nop
    record 1f, seg=RCX
bad:
1:  movq %rax, (%rcx)
    ret
