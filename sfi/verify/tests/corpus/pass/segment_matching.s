# pass
# level full
# Level `check`: an address is compared with the segment, with flags dead and with flags live; then the access is confined as ever.
main:
    pushq %rcx
    leaq 8(%rax), %rcx
    subq %gs:0x10000, %rcx
    bswapq %rcx
    testl %ecx, %ecx
    je 1f
    ud2
1:  popq %rcx
    movq %rdx, %gs:8(%eax)
    cmpq %rsi, %rdi
    pushq %r11
    pushq %rcx
    leaq 8(%rax,%rdx,4), %rcx
    bswapq %rcx
    movq %gs:0x10000, %r11
    bswapq %r11
    notl %r11d
    leaq 1(%rcx,%r11), %rcx
    jecxz 2f
    ud2
2:  popq %rcx
    popq %r11
    movq %rdx, %gs:8(%eax,%edx,4)
    jb 3f
    jrcxz 3f
    # a thread-local variable between a comparison and its branch
    cmpq %rsi, %rdi
    pushq %rax
    lahf
    seto %al
    movl %ebp, %r11d
    orl $0x7fffff, %r11d
    addb $127, %al
    sahf
    popq %rax
    movl %gs:-15(%r11d), %ecx
    jb 3f
    nop
3:  ret
