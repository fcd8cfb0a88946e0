# fail Label bad
# the word is not rbx as it was at entry
main:
    push %rax
    record 1f, depth=1, slots=1
bad:
1:  pop %rbx
    ret
