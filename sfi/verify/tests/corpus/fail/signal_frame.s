# fail Instruction bad
# rt_sigreturn would load every register from memory
main:
    movl $15, %eax
bad:
    syscall
    ud2
