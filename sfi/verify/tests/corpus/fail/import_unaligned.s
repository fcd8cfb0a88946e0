# fail Import bad
main:
bad:
    call *%gs:0x10104
    ret
