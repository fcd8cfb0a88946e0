# A module whose constructors run before its first call: the first sets a word, the second doubles it, asks the host, and does as told.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

slot first
slot second
slot get
  .section .pbl.ftab,"ax",@progbits
host:
  jmp *%gs:0x10100
unused
unused
unused
unused
export get
import host

  .data
  .balign 8
word:
  .quad 0

function first
  movq $21, word(%rip)
  ret

function second
  shlq word(%rip)
  call *%gs:0x10100
  cmpq $1, %rax
  je 2f
1:
  cmpq $2, %rax
  je 1b
  ret
2:
  ud2

function get
  movq word(%rip), %rax
  ret

  .section .init_array,"aw",@init_array
  .balign 8
  .quad first, second
