# fail Target bad
# the constant holds `syscall`
main:
bad:
    jmp 1f + 2
1:  movabsq $0x9090909090050f90, %rax
    ret
