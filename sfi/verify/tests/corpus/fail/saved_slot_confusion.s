# fail Label bad
# on one way the word holds rbx, the later way comes with something else
main:
    push %rbx
    record 1f, depth=1, slots=1
1:  pop %rbx
    push %rax
bad:
    jmp 1b
