# fail Instruction bad
main:
bad:
    monitor
    ret
