# fail Instruction bad
main:
bad:
    xlatb
    ret
