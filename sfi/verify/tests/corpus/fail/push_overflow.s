# fail Depth bad
main:
.rept 15
    push %rax
.endr
bad:
    push %rax
    ud2
