# A program without a C library: argument 1 says what it does.
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

export _start
import_as system, pbl_syscall

# The block: count, arguments. Argument 1 is a path, argument 2 what to write there.
function _start
  pushq %rbx
  pushq %r12
  pushq %r13
  movq %rdi, %rbx
  # open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644)
  movl $2, %edi
  movq 16(%rbx), %rsi
  movl $01101, %edx
  movl $0644, %ecx
  call *%gs:0x10100
  movq %rax, %r12
  testq %rax, %rax
  js 1f
  # write(file, argument 2, 4)
  movl $1, %edi
  movq %r12, %rsi
  movq 24(%rbx), %rdx
  movl $4, %ecx
  call *%gs:0x10100
  movq %rax, %r12
  # brk(0), brk(+1 MiB), and a store at the end of it
  movl $12, %edi
  xorl %esi, %esi
  call *%gs:0x10100
  leaq 0x100000(%rax), %rsi
  movl $12, %edi
  call *%gs:0x10100
  movq $7, %gs:-8(%eax)
  # mmap(0, 64 KiB, rw, private anonymous), and a store
  movl $9, %edi
  xorl %esi, %esi
  movl $0x10000, %edx
  movl $3, %ecx
  movl $0x22, %r8d
  call *%gs:0x10100
  movq $7, %gs:0xfff8(%eax)
  # munmap
  movq %rax, %rsi
  movl $11, %edi
  movl $0x10000, %edx
  call *%gs:0x10100
1:
  # exit
  movl $231, %edi
  movq %r12, %rsi
  call *%gs:0x10100
  ud2
system$code:
  jmp *%gs:0x10100
