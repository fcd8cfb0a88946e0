# setjmp and longjmp, honest and not.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 0
.include "module.inc"

slot attempt
slot forged
slot gone
  .section .pbl.ftab,"ax",@progbits
set:
  jmp *%gs:0x10100
jump:
  jmp *%gs:0x10108
unused
unused
unused

export attempt
export forged
export gone
import_as set, pbl_setjmp
import_as jump, pbl_longjmp

# Comes back from `rdi` calls deep with 7: 10 * 7 + what a preserved register and the data stack still hold, 3 + 4.
function attempt
  pushq %rbx
  pushq %r12
  subq $32, %rbp
  movl $3, %ebx
  movq $4, 16(%rbp)
  movq %rdi, %r12
  leaq buffer(%rip), %rdi
  call *%gs:0x10100
  testl %eax, %eax
  jne 1f
  movq %r12, %rdi
  call deep$code
  ud2
1:
  leaq (%rax,%rax,4), %rax
  addq %rax, %rax
  addq %rbx, %rax
  addq 16(%rbp), %rax
  addq $32, %rbp
  popq %r12
  popq %rbx
  ret

function deep
  pushq %rbx
  subq $48, %rbp
  movl $99, %ebx
  movq $98, 16(%rbp)
  decq %rdi
  js 1f
  call deep$code
1:
  leaq buffer(%rip), %rdi
  movl $7, %esi
  call jump$code
  addq $48, %rbp
  popq %rbx
  ret

# A buffer whose stack pointer has been changed.
function forged
  leaq buffer(%rip), %rdi
  call *%gs:0x10100
  addq $8, buffer+48(%rip)
  leaq buffer(%rip), %rdi
  call *%gs:0x10108
  ret

# A buffer of a function that has returned.
function gone
  call inner$code
  leaq buffer(%rip), %rdi
  call *%gs:0x10108
  ret
function inner
  leaq buffer(%rip), %rdi
  call *%gs:0x10100
  ret

set$code:
  jmp *%gs:0x10100
jump$code:
  jmp *%gs:0x10108

.bss
buffer: .zero 64
