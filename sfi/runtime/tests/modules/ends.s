# What a module does without any policy: it takes memory, and ends itself.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

  .section .pbl.ftab,"ax",@progbits
mapping:
  jmp *%gs:0x10100
leaving:
  jmp *%gs:0x10108
killing:
  jmp *%gs:0x10110
opening:
  jmp *%gs:0x10118
unused
unused
unused
unused

export take
export leave
export abort
export open
export quit
import_as mapping, pbl_sys_mmap
import_as leaving, pbl_sys_exit_group
import_as killing, pbl_sys_tkill
import_as opening, pbl_sys_open

# So many bytes of memory, and a word in them.
function take
  movq %rdi, %rsi
  xorl %edi, %edi
  movl $3, %edx
  movl $0x22, %ecx
  movq $-1, %r8
  xorl %r9d, %r9d
  call *%gs:0x10100
  testq %rax, %rax
  js 1f
  movq $7, %gs:(%eax)
1:
  ret

# As a C library does it: again and again.
function leave
  pushq %rbx
  movq %rdi, %rbx
1:
  movq %rbx, %rdi
  call *%gs:0x10108
  jmp 1b

# Its last act: what ends it comes back to the caller.
function quit
  jmp *%gs:0x10108

function abort
  movl $1, %edi
  movl $6, %esi
  call *%gs:0x10110
  ud2

function open
  xorl %esi, %esi
  xorl %edx, %edx
  call *%gs:0x10118
  ret
