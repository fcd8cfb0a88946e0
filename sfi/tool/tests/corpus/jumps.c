/* Switch tables dense and sparse, nested; computed gotos with constant and computed tables, with tables that change, have holes, hold
 * distances or more than labels, and are read. */
#include "t.h"
__attribute__((noinline)) long sw(unsigned x, long *p) {
    switch (x) { case 0: return p[1]; case 1: p[0] += 3; break; case 2: return ~p[2]; case 3: p[1] ^= 77; break;
    case 4: return 9; case 5: p[2] -= p[0]; break; case 6: t_out(x); break; case 9: return 12; default: return -1; }
    return p[0] + p[1] * 2 + p[2];
}
__attribute__((noinline)) int interp(const unsigned char *c) {
    static void *const ops[] = {&&inc, &&dec, &&dbl, &&jnz, &&out, &&end, &&sqr};
    long a = 0, n = 3; int budget = 200;
    goto *ops[*c];
inc: a++; c++; goto *ops[*c];
dec: n--; c++; goto *ops[*c];
dbl: a *= 2; c++; goto *ops[*c];
jnz: c++; if (n && budget-- > 0) c -= c[0]; else c++; goto *ops[*c];
out: t_out(a); c++; goto *ops[*c];
sqr: a = a * a + n; c++; goto *ops[*c];
end: return (int)a;
}
__attribute__((noinline)) long dyn(int k) {
    void *t[3]; long r = 0;
    t[0] = &&a; t[1] = &&b; t[2] = &&c;
    for (int i = 0; i < 4; i++) { goto *t[(k + i) % 3];
    a: r += 1; continue;
    b: r = r * 10 + 2; continue;
    c: r = r * 7 + 3; }
    return r;
}
__attribute__((noinline)) int chars(const char *s) {
    int v = 0;
    for (; *s; s++) switch (*s) { case 'a': v += 1; break; case 'b': v += 20; break; case 'c': v ^= 5; break; case 'd': v <<= 1; break;
        case 'e': switch (v & 7) { case 0: v += 9; break; case 1: v -= 4; break; case 2: v *= 3; break; case 3: v++; break; case 5: v ^= 0x55; break; case 6: return v; } break;
        case 'f': v = -v; break; case 'g': t_out(v); break; default: v += 1000; }
    return v;
}
__attribute__((noinline)) int patched(int i, int patch) {
    static void *t[] = {&&a, &&b, &&c, &&d};
    if (patch) t[2] = &&d;
    goto *t[i];
a: return 10; b: return 11; c: return 12; d: return 13;
}
__attribute__((noinline)) int holes(int i) {
    static void *const t[8] = {[0] = &&a, [5] = &&b, [7] = &&c};
    goto *t[i];
a: return 20; b: return 21; c: return 22;
}
__attribute__((noinline)) int distances(int i) {
    static const int t[] = {&&b - &&a, &&a - &&a, &&c - &&a, &&d - &&a};
    goto *(&&a + t[i]);
a: return 30; b: return 31; c: return 32; d: return 33;
}
__attribute__((noinline)) long operations(int i) {
    static const struct { void *label; long n; } t[] = {{&&a, 100}, {&&b, 200}, {&&c, 300}, {&&a, 400}};
    long n = t[i].n;
    goto *t[i].label;
a: return n + 1; b: return n + 2; c: return n + 3;
}
__attribute__((noinline)) long compared(int i, int j) {
    static void *const t[] = {&&a, &&b, &&c, &&a, &&d};
    long r = t[i] == t[j] ? 1000 : 0;
    goto *t[i];
a: return r + 1; b: return r + 2; c: return r + 3; d: return r + 4;
}
/* More values than registers, all of them wanted wherever a jump leads. */
__attribute__((noinline)) long many(const unsigned char *c, long a, long b, long d, long e, long f) {
    static void *const t[] = {&&l0, &&l1, &&l2, &&l3, &&end};
    void *changing[] = {&&l0, &&l1, &&l2, &&l3, &&end};
    long g = a ^ b, h = b ^ d, i = d + e, j = e - f, k = f * a, l = a - d, m = b - e, n = a + f;
    unsigned op = *c++;
    goto *t[op];
l0: a += b * op; d ^= e; f += n; op = *c++; goto *t[op];
l1: g += h - op; i ^= j; k += l; op = *c++; goto *changing[op];
l2: m += n + op; b ^= a; h += k; op = *c++; goto *t[op];
l3: e += g ^ op; l ^= m; n += d; op = *c++; goto *changing[op];
end: return a + 3 * b + 5 * d + 7 * e + 9 * f + 11 * g + 13 * h + 15 * i + 17 * j + 19 * k + 21 * l + 23 * m + 25 * n + op;
}
/* A default, and a hole, that cannot be reached: the table leads to the end of the function for them, at another depth than the next one begins with. */
__attribute__((noinline)) long never(int i, long a, long b) {
    long keep[4];
    keep[0] = a, keep[1] = b, keep[2] = a ^ b, keep[3] = a + b;
    t_out(keep[i & 3]);
    switch (i) {
    case 0: t_out(a); return keep[1] + 1; case 1: t_out(b); return keep[2] * 3; case 2: return keep[0] - keep[3]; case 3: t_out(a * b); return 5;
    case 5: return keep[3] ^ 99; case 6: t_out(a - b); return keep[1] * a; case 7: return keep[2] + 17; default: __builtin_unreachable();
    }
}
__attribute__((noinline)) long after(long a) { return a * 7 + 1; }
/* A nested call with words on the stack, in a frame whose size is not known. */
__attribute__((noinline)) long eight(long a, long b, long c, long d, long e, long f, long g, long h) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h; }
__attribute__((noinline)) long pushed(int n, long *p) {
    volatile char room[n];
    room[0] = (char)n;
    return eight(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]) + room[0];
}
int t_main(void) {
    for (int i = 0; i < 8; i++) if (i != 4) t_out(never(i, 100 + i, 7));
    t_out(after(3));
    static long words[8] = {1, 20, 300, 4000, 50000, 600000, 7000000, 80000000};
    for (int n = 1; n < 100; n += 33) t_out(pushed(n, words));
    long p[3] = {10, 20, 30};
    for (unsigned i = 0; i < 12; i++) t_out(sw(i, p));
    t_out(sw(-1, p));
    static const unsigned char prog[] = {0, 0, 2, 1, 4, 3, 4, 6, 4, 5};
    t_out(interp(prog));
    for (int i = 0; i < 3; i++) t_out(dyn(i));
    t_out(chars("abcdeeegffabezde"));
    for (int k = 0; k < 3; k++) for (int i = 0; i < 4; i++) t_out(patched(i, k == 1));
    t_out(holes(0)); t_out(holes(5)); t_out(holes(7));
    for (int i = 0; i < 4; i++) { t_out(distances(i)); t_out(operations(i)); }
    for (int i = 0; i < 25; i++) t_out(compared(i / 5, i % 5));
    static const unsigned char path[] = {0, 1, 2, 3, 3, 2, 1, 0, 2, 0, 3, 1, 1, 3, 2, 2, 0, 0, 4};
    t_out(many(path, 1, 20, 300, 4000, 50000));
    return 7;
}
