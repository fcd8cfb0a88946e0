# What runs if a system starts the module's file as if it were a program of its own: it says what the file is, and exits as shells do for what they
# cannot execute. It is none of the domain's code: the loader passes over its segment, and the verifier never sees it.
	.section .pbl.native,"ax",@progbits
	.globl __pbl_native
	.type __pbl_native,@function
__pbl_native:
	movq 8(%rsp),%r12			# the name by which it was started
	leaq .Lwho(%rip),%rax
	testq %r12,%r12
	cmoveq %rax,%r12
	movq %r12,%rsi
	call .Lsay
	leaq .Lwhat(%rip),%rsi
	call .Lsay
	movq %r12,%rsi
	call .Lsay
	leaq .Lend(%rip),%rsi
	call .Lsay
	movl $126,%edi
	movl $231,%eax				# exit_group
	syscall

.Lsay:						# the text at rsi, to standard error
	xorl %edx,%edx
1:	cmpb $0,(%rsi,%rdx)
	je 2f
	incl %edx
	jmp 1b
2:	movl $2,%edi
	movl $1,%eax				# write
	syscall
	ret

.Lwho:	.asciz "FILE"
