# fail Callee bad
# callers promise nothing
main:
bad:
    call 1f
    ret
    record 1f, seg=RDI
1:  movq %rax, (%rdi)
    ret
