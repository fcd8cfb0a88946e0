# fail Instruction bad
main:
bad:
    outsb
    ret
