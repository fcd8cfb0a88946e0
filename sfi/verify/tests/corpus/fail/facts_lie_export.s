# fail Callee bad
    record main, seg=RDI
bad:
main:
    movq %rax, (%rdi)
    ret
