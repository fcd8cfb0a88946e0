# fail Untouched bad
main:
    subq $8192, %rbp
bad:
    prefetcht0 (%rbp)
    addq $8192, %rbp
    ret
