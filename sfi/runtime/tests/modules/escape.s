# A program that calls a function of the process, and exits with what that returns.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

  .section .pbl.ftab,"ax",@progbits
system:
  jmp *%gs:0x10100
host:
  jmp *%gs:0x10108
unused
unused
unused
unused
unused
unused

export _start
import_as system, pbl_syscall
import_as host, host0

function _start
  call *%gs:0x10108
  movq %rax, %rsi
  movl $231, %edi
  call *%gs:0x10100
  ud2
system$code:
  jmp *%gs:0x10100
host$code:
  jmp *%gs:0x10108
