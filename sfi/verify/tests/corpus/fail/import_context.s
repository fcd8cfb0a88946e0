# fail Import bad
main:
bad:
    call *%gs:0x10000
    ret
