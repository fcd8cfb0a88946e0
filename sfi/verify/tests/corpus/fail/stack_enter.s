# fail Instruction bad
main:
bad:
    enter $64, $0
    ret
