# Rounding, masks and the x87 registers as no function expects them.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

  .section .pbl.ftab,"ax",@progbits
host0:
  jmp *%gs:0x10100
unused
unused
unused
unused
unused
unused
unused

export wild
export controls
import host0

# Calls out with all exceptions unmasked, rounding to zero, two x87 registers in use and a division by zero to be reported. What the
# callee has said, and in the upper half what the controls are then.
function wild
  subq $16, %rbp
  movl $0x6000, 8(%rbp)
  ldmxcsr 8(%rbp)
  movl $0x0f40, 8(%rbp)
  fldcw 8(%rbp)
  fldz
  fld1
  fdiv %st(1), %st
  call *%gs:0x10100
  movq %rax, 8(%rbp)
  addq $16, %rbp
  call controls$code
  shlq $32, %rax
  orq -8(%rbp), %rax
  ret

function controls
  stmxcsr -24(%rbp)
  fnstcw -20(%rbp)
  movl -24(%rbp), %eax
  andl $0xffc0, %eax
  movzwl -20(%rbp), %ecx
  shll $16, %ecx
  orl %ecx, %eax
  ret

host0$code:
  jmp *%gs:0x10100
