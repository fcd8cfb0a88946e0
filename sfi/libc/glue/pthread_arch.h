/* The thread's control block is a thread-local variable: the thread pointer's place belongs to the runtime. */
extern _Thread_local char __pbl_self[];
static inline uintptr_t __get_tp(void) { return (uintptr_t)__pbl_self; }
#define MC_PC gregs[REG_RIP]
