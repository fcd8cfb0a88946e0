# fail Instruction bad
main:
bad:
    sysenter
    ret
