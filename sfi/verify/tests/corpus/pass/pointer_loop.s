# the store keeps the pointer near the segment
main:
    confine %edi, %rdi
    leaq 64(%rdi), %rdi
    record 1f, seg=RDI
1:  movups %xmm0, (%rdi)
    vmovups %ymm0, 16(%rdi)
    addq $48, %rdi
    decl %ecx
    jne 1b
    ret
