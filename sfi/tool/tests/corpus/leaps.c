/* setjmp in functions with alloca, variable-length arrays and over-aligned locals, and longjmp out of and into them. */
#ifdef NATIVE
#include <setjmp.h>
#include <stdio.h>
#else
typedef long jmp_buf[8];
int setjmp(jmp_buf) __attribute__((returns_twice));
void longjmp(jmp_buf, int) __attribute__((noreturn));
#endif
#define HARD __attribute__((noinline))
typedef long vector __attribute__((vector_size(32)));

static jmp_buf env, outer;
static volatile int turns;

HARD void fill(char *p, long n, int k) { for (long i = 0; i < n; i++) p[i] = (char)(i * k + n); }
HARD long total(const char *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += p[i] * (i & 7); return s; }
HARD void away(int deep, int value) {
    volatile char pad[24]; pad[deep % 24] = 1;
    if (deep == 0) longjmp(env, value);
    away(deep - 1, value); pad[0]++;
}
/* Some leave from a frame with an alloca of its own. */
HARD void away_dynamic(int deep, int value) {
    char *p = __builtin_alloca(deep * 16 + 16); fill(p, deep * 16 + 16, value);
    if (deep == 0) longjmp(env, value);
    away_dynamic(deep - 1, value + (int)(total(p, 16) & 0)); p[0]++;
}

HARD long before(int n) {
    char *p = __builtin_alloca(n); fill(p, n, 3);
    volatile long x = 7; turns = 0;
    int r = setjmp(env);
    if (r < 4) { turns = turns + 1; x += r; if (r & 1) away(5, r + 1); else away_dynamic(3, r + 1); }
    return total(p, n) + x * 100 + r * 10 + turns;
}
HARD long after(int n) {
    volatile long x = 5; volatile int first = 1;
    int r = setjmp(env);
    char *p = __builtin_alloca(n + r); fill(p, n + r, r + 1);
    if (first) { first = 0; x = total(p, n); away(2, 9); }
    return x + total(p, n + r) + r;
}
/* Without the memory that each round takes coming back, this would be a stack overflow: 3000 rounds of 64 KiB. */
HARD long rounds(int n) {
    volatile long sum = 0; char *keep = __builtin_alloca(32); fill(keep, 32, 5);
    int r = setjmp(env);
    if (r < 3000) { char *p = __builtin_alloca(n); p[0] = (char)r; p[n - 1] = 2; sum += p[0] + p[n - 1]; away(1, r + 1); }
    return sum + total(keep, 32);
}
HARD long arrays(int n) {
    volatile long sum = 0;
    for (volatile int i = 1; i < 5; i++) {
        char v[i * n]; fill(v, sizeof v, i);
        int r = setjmp(env);
        if (r < 2) away_dynamic(i, r + 1);
        sum += total(v, sizeof v) + r;
    }
    return sum;
}
HARD long aligned(long a, long b) {
    __attribute__((aligned(64))) char x[64]; fill(x, 64, 2);
    volatile long y = a;
    int r = setjmp(env);
    if (r < 3) { y += b; away(r + 1, r + 1); }
    return total(x, 64) + y + r + ((long)x & 63);
}
HARD long both(int n, long a, long b, long c, long d, long e, long f) {
    __attribute__((aligned(32))) char x[64]; char *p = __builtin_alloca(n); fill(x, 64, 1); fill(p, n, 2);
    volatile long y = a;
    int r = setjmp(env);
    if (r < 3) { y += b; away_dynamic(r + 1, r + 1); }
    return total(x, 64) + total(p, n) + y + r + c + d + e * f + ((long)x & 31);
}
HARD long nested(int n) {
    char *p = __builtin_alloca(n); fill(p, n, 1);
    volatile long sum = total(p, n);
    int r = setjmp(outer);
    if (r < 3) { sum += before(n) + aligned(r, n); longjmp(outer, r + 1); }
    return sum + r;
}
HARD long values(int n) {
    char *p = __builtin_alloca(n); fill(p, n, 7);
    volatile __int128 wide = (__int128)n << 70; volatile long double precise = n; volatile vector many = {1, 2, 3, n};
    static long counter; counter = 0;
    int r = setjmp(env);
    if (r < 4) {
        wide = wide * 3 + r; precise = precise / 3.0L + r; many = many * (vector){2, 2, 2, 2} + r;
        __atomic_fetch_add(&counter, 3, __ATOMIC_SEQ_CST); long old = r * 3 + 3;
        __atomic_compare_exchange_n(&counter, &old, r * 10 + 10, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        away(r, r + 1);
    }
    vector m = many; __int128 w = wide;
    return total(p, n) + (long)(w >> 60) + (long)w + (long)(precise * 1000000.0L) + m[0] + m[1] * 3 + m[2] * 5 + m[3] * 7 + counter;
}

long leap(long which, long n) {
    switch (which) {
    case 0: return before(n);
    case 1: return after(n);
    case 2: return rounds(64 << 10);
    case 3: return arrays(n);
    case 4: return aligned(n, 3);
    case 5: return both(n, 2, 3, 4, 5, 6, 7);
    case 6: return nested(n);
    default: return values(n);
    }
}
#ifdef NATIVE
int main(void) { for (long which = 0; which < 8; which++) for (long n = 10; n < 200; n += 63) printf("%ld\n", leap(which, n)); }
#endif
