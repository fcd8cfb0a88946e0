# What a module asks for in specifications of its own; and what it can see of how its caller computes.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

  .section .pbl.ftab,"ax",@progbits
host:
  jmp *%gs:0x10100
unused
unused
unused
unused
unused
unused
unused

export plain, npii
export w, smiw
export r, smr
export o, smo
export t, smt
export g, smg
export k, smk
export a, smia
export d, smd
export h, smih
export signs
export codes
export after
export third
export controls
export clock
export entry
import_as host, host0

function plain
  leaq (%rdi,%rsi), %rax
  ret
.irp name, w, r, o, t, g, k, a, d, h
function \name
  xorl %eax, %eax
  ret
.endr

# The signs of the x87 registers that are not in use, and the condition codes before that.
function signs
  xorl %ecx, %ecx
.rept 8
  fxam
  fnstsw %ax
  shrl $9, %eax
  andl $1, %eax
  addl %ecx, %ecx
  orl %eax, %ecx
  fincstp
.endr
  movl %ecx, %eax
  ret
function codes
  fnstsw %ax
  movzwl %ax, %eax
  ret
# The same when a function of the process has been called.
function after
  call *%gs:0x10100
  jmp signs$code

# Bits of a third, which say how it was rounded.
function third
  movl $1, %eax
  cvtsi2sdq %rax, %xmm0
  movl $3, %eax
  cvtsi2sdq %rax, %xmm1
  divsd %xmm1, %xmm0
  movq %xmm0, %rax
  ret
function controls
  stmxcsr word(%rip)
  movl word(%rip), %eax
  ret
function clock
  rdtsc
  ret
# An address of portal code.
function entry
  movq $0x10100, %rcx
  movq %gs:(%ecx), %rax
  ret
host$code:
  jmp *%gs:0x10100
.data
word: .quad 0
