# Whatever its caller wants of the process: the number of a system call, and five words.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

  .section .pbl.ftab,"ax",@progbits
system:
  jmp *%gs:0x10100
unused
unused
unused
unused
unused
unused
unused

export sys
import_as system, pbl_syscall

function sys
  jmp *%gs:0x10100
system$code:
  jmp *%gs:0x10100
