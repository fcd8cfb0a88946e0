# fail Import bad
main:
bad:
    call *%gs:0x10120
    ret
