# fail Instruction bad
main:
bad:
    int $0x80
    ret
