# fail Untouched bad
main:
    subq $8192, %rbp
bad:
    call main
    addq $8192, %rbp
    ret
