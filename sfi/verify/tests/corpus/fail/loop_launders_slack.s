# fail Facts bad
# every round would go further
main:
    confine %ecx, %rcx
    record 1f, seg=RCX
1:  addq $0x10001, %rcx
    decl %eax
bad:
    jne 1b
    ret
