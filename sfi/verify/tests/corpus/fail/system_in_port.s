# fail Instruction bad
main:
bad:
    inb $8, %al
    ret
