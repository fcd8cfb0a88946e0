# fail Facts bad
main:
    confine %ecx, %rcx
    addq $0x10001, %rcx
    record 1f, seg=RCX
bad:
1:  movq %rax, (%rcx)
    ret
