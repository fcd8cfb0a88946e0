/* System calls of the C library in a fault domain: one function, which calls imports by name (syscall.c). */
#define __SYSCALL_LL_E(x) (x)
#define __SYSCALL_LL_O(x) (x)
__attribute__((__visibility__("hidden"))) long __pbl_syscall(long, long, long, long, long, long, long);
static __inline long __syscall0(long n) { return __pbl_syscall(n, 0, 0, 0, 0, 0, 0); }
static __inline long __syscall1(long n, long a) { return __pbl_syscall(n, a, 0, 0, 0, 0, 0); }
static __inline long __syscall2(long n, long a, long b) { return __pbl_syscall(n, a, b, 0, 0, 0, 0); }
static __inline long __syscall3(long n, long a, long b, long c) { return __pbl_syscall(n, a, b, c, 0, 0, 0); }
static __inline long __syscall4(long n, long a, long b, long c, long d) { return __pbl_syscall(n, a, b, c, d, 0, 0); }
static __inline long __syscall5(long n, long a, long b, long c, long d, long e) { return __pbl_syscall(n, a, b, c, d, e, 0); }
static __inline long __syscall6(long n, long a, long b, long c, long d, long e, long f) { return __pbl_syscall(n, a, b, c, d, e, f); }
#define IPC_64 0
