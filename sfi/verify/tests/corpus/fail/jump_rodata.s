# fail Target bad
main:
bad:
    jmp rodata
