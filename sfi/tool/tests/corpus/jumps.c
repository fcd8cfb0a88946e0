/* Switch tables dense and sparse, nested; computed gotos with constant and computed tables. */
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
int t_main(void) {
    long p[3] = {10, 20, 30};
    for (unsigned i = 0; i < 12; i++) t_out(sw(i, p));
    t_out(sw(-1, p));
    static const unsigned char prog[] = {0, 0, 2, 1, 4, 3, 4, 6, 4, 5};
    t_out(interp(prog));
    for (int i = 0; i < 3; i++) t_out(dyn(i));
    t_out(chars("abcdeeegffabezde"));
    return 7;
}
