# fail Target bad
main:
bad:
    jmp .+0x100000
