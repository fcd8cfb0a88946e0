/* alloca, VLAs in loops, realigned frames, both at once, large frames, setjmp. */
#include "t.h"
__attribute__((noinline)) static void fill(char *p, long n, int v) { for (long i = 0; i < n; i++) p[i] = v + i; }
__attribute__((noinline)) static long total(const char *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += p[i]; return s; }
__attribute__((noinline)) long al(long n) { char *p = __builtin_alloca(n); fill(p, n, 3); char *q = __builtin_alloca(n + 5); fill(q, n + 5, 9); return total(p, n) * 1000 + total(q, n + 5); }
__attribute__((noinline)) long vla(int n) { long s = 0; for (int i = 1; i < n; i++) { int v[i]; for (int k = 0; k < i; k++) v[k] = k * i; fill((char *)v, 1, i); s += v[i - 1] + total((char *)v, i); } return s; }
__attribute__((noinline)) long aligned(long a, long b, long c, long d, long e, long f, long g) {
    __attribute__((aligned(64))) char x[128]; fill(x, 128, a + g); t_out((long)x & 63); return total(x, 128) + b + c + d + e + f * g;
}
__attribute__((noinline)) long both(long n, long b, long c, long d, long e, long f, long g) {
    __attribute__((aligned(32))) char x[64]; char *p = __builtin_alloca(n); fill(x, 64, 1); fill(p, n, 2);
    t_out((long)x & 31); return total(x, 64) + total(p, n) + b + c + d + e + f * g;
}
__attribute__((noinline)) long large(int n) { char x[100000]; fill(x, sizeof x, n); return total(x, 777) + x[99999]; }
__attribute__((noinline)) long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) { return a + b * 2 + c + d + e + f + g * 3 + h + i * 5 + j; }
__attribute__((noinline)) long vargs(long n) { char *p = __builtin_alloca(n); fill(p, n, 1); return ten(p[0], p[1], 3, 4, 5, 6, p[2], 8, total(p, n), 10); }
__attribute__((noinline)) long cond(int n) { long s = n; if (n & 1) { char *p = __builtin_alloca(n * 8); fill(p, n, n); s += total(p, n); } t_out(s); return s * 2; }
static jmp_buf_t env; static int depth;
__attribute__((noinline)) void deep(int n) { volatile char pad[40]; pad[n & 31] = n; if (n == 0) T_LONGJMP(env, 5); depth++; deep(n - 1); pad[1]++; }
__attribute__((noinline)) long jump(long a, long b) {
    volatile long x = a; volatile int tries = 0;
    int r = T_SETJMP(env);
    if (r == 0 || tries < 3) { tries++; x += b; t_out(r); deep(10 + tries); }
    return x + r + depth;
}
int t_main(void) {
    t_out(al(10)); t_out(al(1000)); t_out(vla(20)); t_out(aligned(1, 2, 3, 4, 5, 6, 7));
    t_out(both(33, 2, 3, 4, 5, 6, 7));
    t_out(large(3)); t_out(vargs(50)); t_out(cond(6)); t_out(cond(7)); t_out(jump(100, 11));
    return 1;
}
