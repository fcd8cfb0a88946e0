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
export swapped
export lost
export far
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

# At the setjmp the data stack pointer is on the return stack; when it comes back, something else is there: what `rdi` says.
function swapped
  movq %rdi, kept(%rip)
  pushq %rbp
  leaq buffer(%rip), %rdi
  call *%gs:0x10100
  testl %eax, %eax
  je 1f
  popq %rbp
  movq $77, -8(%rbp)
  xorl %eax, %eax
  ret
1:
  popq %rax
  movq kept(%rip), %rax
  pushq %rax
  leaq buffer(%rip), %rdi
  movl $1, %esi
  call *%gs:0x10108
  ud2

# Jumps back over a function that has thrown the data stack pointer away. How far it is from what it was at the setjmp.
function lost
  subq $64, %rbp
  movq %rbp, kept(%rip)
  leaq buffer(%rip), %rdi
  call *%gs:0x10100
  testl %eax, %eax
  jne 1f
  call stray$code
  ud2
1:
  movq %rbp, %rax
  subq kept(%rip), %rax
  addq $64, %rbp
  ret
function stray
  pushq %rbp
  movl $0x12345678, %ebp
  addq %gs:0x10000, %rbp
  popq %rax
  leaq buffer(%rip), %rdi
  movl $1, %esi
  call *%gs:0x10108
  ud2

# A long walk for nothing: `rdi` frames of a function with much code and no label before its return site.
function far
  decq %rdi
  js 1f
  .rept 20000
  movl %eax, %eax
  .endr
  call far$code
  ret
1:
  call inner$code
  leaq buffer(%rip), %rdi
  movl $1, %esi
  call *%gs:0x10108
  ud2

set$code:
  jmp *%gs:0x10100
jump$code:
  jmp *%gs:0x10108

.bss
buffer: .zero 64
kept: .zero 8
