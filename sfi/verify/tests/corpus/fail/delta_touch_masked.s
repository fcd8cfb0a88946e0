# fail Untouched bad
main:
    subq $8192, %rbp
bad:
    vmaskmovps %ymm0, %ymm1, (%rbp)
    addq $8192, %rbp
    ret
