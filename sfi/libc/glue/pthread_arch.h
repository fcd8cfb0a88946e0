/* The thread's control block is a thread-local variable: the thread pointer's place belongs to the runtime. The runtime fills it with zeroes;
 * a thread that has come into a module of functions, which no `_start` has gone before, finds it so at its first use. */
extern _Thread_local char __pbl_self[];
__attribute__((__visibility__("hidden"))) int __init_tp(void *);
static inline uintptr_t __get_tp(void) {
    if (!*(void *volatile *)__pbl_self)
        __init_tp(__pbl_self);
    return (uintptr_t)__pbl_self;
}
#define MC_PC gregs[REG_RIP]
