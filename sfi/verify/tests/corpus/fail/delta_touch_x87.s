# fail Untouched bad
# with an unmasked exception nothing may be stored
main:
    subq $8192, %rbp
bad:
    fstps (%rbp)
    addq $8192, %rbp
    ret
