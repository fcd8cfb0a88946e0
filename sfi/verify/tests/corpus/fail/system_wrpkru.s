# fail Instruction bad
main:
bad:
    wrpkru
    ret
