# setjmp and longjmp are imports: only the runtime may move the return stack.
.text
.globl setjmp, _setjmp, __setjmp, sigsetjmp, __sigsetjmp, longjmp, _longjmp
.type setjmp,@function
setjmp: jmp pbl_setjmp
.type _setjmp,@function
_setjmp: jmp pbl_setjmp
.type __setjmp,@function
__setjmp: jmp pbl_setjmp
# There are no signals, and so no mask of them to be kept.
.type sigsetjmp,@function
sigsetjmp: jmp pbl_setjmp
.type __sigsetjmp,@function
__sigsetjmp: jmp pbl_setjmp
.type longjmp,@function
longjmp: jmp pbl_longjmp
.type _longjmp,@function
_longjmp: jmp pbl_longjmp
