# pass
main:
    fldt 16(%rbp)
    fldcw 8(%rbp)
    fistpll (%rbp)
    fnstcw 8(%rbp)
    stmxcsr 4(%rbp)
    ldmxcsr 4(%rbp)
    fnstsw %ax
    vcvtsi2sdq %rax, %xmm0, %xmm0
    vfmadd231ps %ymm0, %ymm1, %ymm2
    aesenc %xmm0, %xmm1
    sha256rnds2 %xmm0, %xmm1
    vpclmulqdq $0, %xmm0, %xmm1, %xmm2
    vzeroupper
    ret
