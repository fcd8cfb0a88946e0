# fail Indirect bad
main:
bad:
    call *%rax
    ret
