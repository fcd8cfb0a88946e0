# Everything that the tests of calls and faults need, in confined code written by hand.
.ifndef LEVEL
LEVEL = 1
.endif
TLS_BYTES = 8
.include "module.inc"

slot null
slot add
slot host0
  .section .pbl.ftab,"ax",@progbits
host1:
  jmp *%gs:0x10108
slot spin
unused
unused
unused

export null
export add
export six
export keep
export load
export store
export below
export divide
export crash
export spin
export recurse
export deep
export wild
export callback
export missing
export ends_in_import
export count
export tls
export pointer
export stack_argument
export registers
export dirty
export vectors
export every_vector
export reveal
export repeat
export again
export descend
export steady
export stays
import host0
import host1

function null
  ret

function add
  leaq (%rdi,%rsi), %rax
  ret

# a + 2b + 3c + 4d + 5e + 6f
function six
  leaq (%rdi,%rsi,2), %rax
  leaq (%rdx,%rdx,2), %rdx
  addq %rdx, %rax
  leaq (%rax,%rcx,4), %rax
  leaq (%r8,%r8,4), %r8
  addq %r8, %rax
  leaq (%r9,%r9,2), %r9
  leaq (%rax,%r9,2), %rax
  ret

# Uses preserved registers, and puts them back.
function keep
  pushq %rbx
  pushq %r12
  movq %rdi, %rbx
  movq %rsi, %r12
  leaq (%rbx,%r12), %rax
  popq %r12
  popq %rbx
  ret

function load
  movq %gs:(%edi), %rax
  ret

function store
  movq %rsi, %gs:(%edi)
  xorl %eax, %eax
  ret

# Just below the segment: in its guard zone.
function below
  movq %gs:0x10000, %rax
  movl %edi, %edi
  movq %rsi, -8(%rax,%rdi)
  ret

function divide
  movq %rdi, %rax
  xorl %edx, %edx
  divq %rsi
  ret

# Faults with every preserved register changed.
function crash
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movl $1, %ebx
  movl $2, %r12d
  movl $3, %r13d
  movl $4, %r14d
  movl $5, %r15d
  ud2

function spin
1:
  jmp 1b

function recurse
  pushq %rbx
  call recurse$code
  popq %rbx
  ret

# Data stack without end.
function deep
  subq $4096, %rbp
  movq $0, (%rbp)
  call deep$code
  addq $4096, %rbp
  ret

# A call through a pointer that is none.
function wild
  pushq %rbx
  movq %rdi, %rbx
  andl $(0x20000 + 64 - 8), %ebx
  addq %gs:0x10000, %rbx
  call *%rbx
  popq %rbx
  ret

function callback
  call *%gs:0x10100
  addq $1, %rax
  ret

# Calls on, whatever it is told.
function again
1:
  call *%gs:0x10100
  jmp 1b

function missing
  call host1$code
  ret
host1$code:
  jmp *%gs:0x10108
host0$code:
  jmp *%gs:0x10100

# Nothing of it is on the return stack when the import runs.
function ends_in_import
  jmp host1$code

function count
  incq counter(%rip)
  movq counter(%rip), %rax
  ret

# A thread-local variable.
function tls
  movl %ebp, %eax
  orl $0x7fffff, %eax
  incq %gs:-16 + 1(%eax)
  movq %gs:-16 + 1(%eax), %rax
  ret

function pointer
  movq address(%rip), %rax
  ret

function stack_argument
  movq (%rbp), %rax
  ret

# Preserved registers as the callee finds them.
function registers
  movq %rbx, %rax
  orq %r12, %rax
  orq %r13, %rax
  orq %r14, %rax
  orq %r15, %rax
  orq %r10, %rax
  orq %rcx, %rax
  ret

function dirty
  movl $0x1f80, %eax
  movq %rdi, %xmm7
  ret

function vectors
  movq %xmm7, %rax
  ret

# All bits of all vector registers, both halves.
function every_vector
.irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
  vorps %ymm\n, %ymm0, %ymm0
.endr
  vextractf128 $1, %ymm0, %xmm1
  vorps %xmm1, %xmm0, %xmm0
  vmovhlps %xmm0, %xmm0, %xmm1
  vorps %xmm1, %xmm0, %xmm0
  vmovq %xmm0, %rax
  ret

# What a function of the process has left behind.
function reveal
  call *%gs:0x10100
  jmp every_vector$code

# So many calls of an import.
function repeat
  pushq %rbx
  pushq %r12
  movq %rdi, %rbx
1:
  call *%gs:0x10100
  decq %rbx
  jnz 1b
  popq %r12
  popq %rbx
  ret

# So many calls, one in the other, and their number; with a second word the innermost spins.
function descend
  decq %rdi
  jz 2f
  call *%gs:0x10100
1:
  addq $1, %rax
  ret
2:
  xorl %eax, %eax
3:
  testq %rsi, %rsi
  jnz 3b
  jmp 1b

# Its words, kept on both stacks over a call, whatever that says.
function steady
  pushq %rbx
  movq %rdi, %rbx
  subq $16, %rbp
  movq %rsi, 8(%rbp)
  call *%gs:0x10100
  movq 8(%rbp), %rax
  addq $16, %rbp
  shlq $32, %rax
  orq %rbx, %rax
  popq %rbx
  ret

# Spins, whatever it is told.
function stays
  call *%gs:0x10100
  jmp spin$code

# What a portal must know of.
.ifdef FLOAT
  addsd %xmm0, %xmm0
  ret
.endif
.ifdef CONTROL
  ldmxcsr -8(%rbp)
  ret
.endif

.data
counter: .quad 41
address: .quad counter
.section .template,"aw",@progbits
variable: .quad 6


