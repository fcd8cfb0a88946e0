# fail Delta bad
main:
bad:
    subq $0x40000000, %rbp
    ud2
