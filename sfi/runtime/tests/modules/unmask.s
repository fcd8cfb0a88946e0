# Unmasks what its caller has flagged, with no other x87 instruction.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

unused
unused
unused
unused
unused
unused
unused
unused

export unmask

function unmask
  movl $0x0340, -8(%rbp)
  fldcw -8(%rbp)
  movl $7, %eax
  ret
