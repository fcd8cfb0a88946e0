# fail Store bad
main:
bad:
    stmxcsr (%rax)
    ret
