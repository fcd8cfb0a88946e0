/* Replaces fenv.c: how the thread rounds, and which exceptions have been raised. Exceptions are kept in MXCSR's flags; those that x87 instructions have
 * raised are seen in its status word, and moved from there when some are cleared. Nothing may load x87's whole environment, which marks registers. */
#include <fenv.h>

#define ALL 0x3f

static unsigned status(void) {
    unsigned short word;
    __asm__ volatile("fnstsw %0" : "=a"(word));
    return word & ALL;
}
static unsigned mxcsr(void) {
    unsigned word;
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word;
}
static void set_mxcsr(unsigned word) { __asm__ volatile("ldmxcsr %0" : : "m"(word)); }
static unsigned short control(void) {
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}
static void set_control(unsigned short word) { __asm__ volatile("fldcw %0" : : "m"(word)); }
static void forget(void) { __asm__ volatile("fnclex"); }

int feclearexcept(int which) {
    unsigned raised = mxcsr() | status();
    if (status())
        forget();
    set_mxcsr(raised & ~(unsigned)(which & ALL));
    return 0;
}
int feraiseexcept(int which) {
    set_mxcsr(mxcsr() | (which & ALL));
    return 0;
}
int fetestexcept(int which) { return (int)(mxcsr() | status()) & which & ALL; }

int fegetround(void) { return (int)(mxcsr() >> 3 & 0xc00); }
__attribute__((visibility("hidden"))) int __fesetround(int rounding) {
    set_control((unsigned short)((control() & ~0xc00) | rounding));
    set_mxcsr((mxcsr() & ~0x6000u) | (unsigned)rounding << 3);
    return 0;
}

int fegetenv(fenv_t *to) {
    *to = (fenv_t){.__control_word = control(), .__status_word = (unsigned short)status(), .__mxcsr = mxcsr()};
    return 0;
}
int fesetenv(const fenv_t *from) {
    forget();
    set_control(from == FE_DFL_ENV ? 0x37f : from->__control_word);
    set_mxcsr(from == FE_DFL_ENV ? 0x1f80 : from->__mxcsr | (from->__status_word & ALL));
    return 0;
}
