# fail FallsOff bad
main:
    nop
    xorl %eax, %eax
bad:
