# fail Instruction bad
main:
bad:
    loop main
    ret
