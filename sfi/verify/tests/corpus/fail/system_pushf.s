# fail Instruction bad
main:
bad:
    pushfq
    ret
