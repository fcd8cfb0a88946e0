/* Stack arguments, structures by value, varargs, function pointers, tail calls, recursion. */
#include "t.h"
#include <stdarg.h>
typedef struct { long a, b, c, d; } big;
typedef struct { double x; long n; } mix;
__attribute__((noinline)) long ten(long a, long b, long c, long d, long e, long f, long g, long h, int i, char j) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
__attribute__((noinline)) big swap(big x, int k) { big y = {x.d + k, x.c, x.b, x.a}; return y; }
__attribute__((noinline)) mix mixed(mix m, double d) { m.x += d; m.n++; return m; }
__attribute__((noinline)) long sum(int n, ...) {
    va_list ap, aq; va_start(ap, n); va_copy(aq, ap); long s = 0;
    for (int i = 0; i < n; i++) s = s * 3 + va_arg(ap, long);
    for (int i = 0; i < n; i++) s += va_arg(aq, long);
    va_end(ap); va_end(aq); return s;
}
__attribute__((noinline)) double sumd(int n, ...) {
    va_list ap; va_start(ap, n); double s = 0;
    for (int i = 0; i < n; i++) { s += va_arg(ap, double); s += va_arg(ap, int); }
    va_end(ap); return s;
}
static long add(long a, long b) { return a + b; }
static long mul(long a, long b) { return a * b; }
static long eight(long a, long b, long c, long d, long e, long f, long g, long h) { return a ^ b ^ c ^ d ^ e ^ f ^ g ^ (h << 8); }
long (*volatile table[])(long, long) = {add, mul};
long (*volatile pe)(long, long, long, long, long, long, long, long) = eight;
__attribute__((noinline)) long tail(int k, long a, long b) { return table[k & 1](a, b); }
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long even(long n); 
__attribute__((noinline)) long odd(long n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) long even(long n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) long ack(long m, long n) { char pad[64]; pad[n & 63] = m; if (!m) return n + 1; if (!n) return ack(m - 1, 1); return ack(m - 1, ack(m, n - 1)) + (pad[n & 63] - m); }
int t_main(void) {
    t_out(ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    big b = {1, 2, 3, 4}; b = swap(b, 7); b = swap(b, 9); t_out(b.a); t_out(b.b); t_out(b.c); t_out(b.d);
    mix m = {1.5, 2}; m = mixed(m, 2.25); t_double(m.x); t_out(m.n);
    t_out(sum(3, 1L, 2L, 3L)); t_out(sum(12, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L, 11L, 12L));
    t_double(sumd(10, 1., 1, 2., 2, 3., 3, 4., 4, 5., 5, 6., 6, 7., 7, 8., 8, 9., 9, 10., 10));
    t_out(tail(0, 5, 6)); t_out(tail(1, 5, 6)); t_out(pe(1, 2, 3, 4, 5, 6, 7, 8));
    t_out(fib(20)); t_out(even(1001)); t_out(ack(2, 9));
    return 42;
}
