# fail Store bad
# with an unmasked exception nothing may be stored: it proves nothing about the pointer
main:
    confine %ecx, %rcx
    addq $0x3fffffff, %rcx
    fstps (%rcx)
    addq $0x3fffff00, %rcx
bad:
    movl %eax, (%rcx)
    ret
