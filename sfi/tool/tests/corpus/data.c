/* Strings instructions, atomics, thread-local variables, bit fields, 128-bit, floating point, vectors, long double. */
#include "t.h"
#include <emmintrin.h>
_Thread_local int tl = 5; _Thread_local long tz; static _Thread_local char tarr[16] = "hello";
__attribute__((noinline)) void tls(int k) { tl += k; tz += tl; tarr[k & 7] ^= 1; t_out(tl); t_out(tz); t_text(tarr); t_out(&tl == &tl); }
__attribute__((noinline)) int *tladdr(void) { return &tl; }
static int counter; static long lcounter;
__attribute__((noinline)) long atom(int n) {
    long r = 0;
    for (int i = 0; i < n; i++) { r += __atomic_fetch_add(&counter, i, __ATOMIC_SEQ_CST); r ^= __atomic_exchange_n(&lcounter, r, __ATOMIC_SEQ_CST);
        int e = counter; r += __atomic_compare_exchange_n(&counter, &e, e * 2 + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); __atomic_fetch_or(&counter, 3, __ATOMIC_RELAXED); __atomic_thread_fence(__ATOMIC_SEQ_CST); }
    return r + counter;
}
__attribute__((noinline)) void rep(char *d, const char *s, unsigned long n) {
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}
__attribute__((noinline)) void reps(long *d, long v, unsigned long n) {
    __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(v) : "memory");
}
__attribute__((noinline)) unsigned long len(const char *s) { unsigned long c = -1; const char *p = s; __asm__ volatile("xorl %%eax,%%eax; repne scasb" : "+D"(p), "+c"(c) : : "eax", "cc", "memory"); return p - s - 1; }
__attribute__((noinline)) void vec(float *a, const float *b, int n) { for (int i = 0; i < n; i++) a[i] = a[i] * 1.5f + b[i]; }
__attribute__((noinline)) long sse(const unsigned char *p) { __m128i x = _mm_loadu_si128((const __m128i *)p); x = _mm_add_epi8(x, _mm_set1_epi8(3)); unsigned char o[16]; _mm_storeu_si128((__m128i *)o, x); _mm_stream_si32((int *)o, 77); return o[0] + o[5] * 256 + _mm_movemask_epi8(x); }
typedef struct { unsigned a : 3, b : 7, c : 22; long long d : 40; } bits;
__attribute__((noinline)) void setbits(bits *b, int v) { b->a = v; b->b += v * 3; b->c ^= v * 1001; b->d -= v; }
__attribute__((noinline)) unsigned long wide(unsigned long a, unsigned long b) { unsigned __int128 p = (unsigned __int128)a * b; return (unsigned long)(p >> 64) ^ (unsigned long)p; }
__attribute__((noinline)) long double ld(long double x, long double *p) { *p = x * 3 + *p; return *p / 7; }
long global[64]; static long *volatile gp = global;
__attribute__((noinline)) long shapes(long *p, long i, int j) { p[i] = j; p[i + 1] += 4; ((short *)p)[j] = 7; ((char *)p)[i * 8 + 3] |= 64; p[-1 + i]--; return p[i] ^ p[j & 3] ^ ((int *)p)[i]; }
struct node { struct node *next; long v; };
__attribute__((noinline)) long walk(struct node *n) { long s = 0; while (n) { s = s * 3 + n->v; n->v++; n = n->next; } return s; }
int t_main(void) {
    tls(1); tls(2); *tladdr() = 50; tls(3);
    t_out(atom(20));
    char a[64], b[64]; for (int i = 0; i < 64; i++) b[i] = i * 7; rep(a, b, 64); t_out(a[63]); t_out(a[7]);
    long q[9]; reps(q, 0x123456789, 9); t_out(q[0] + q[8]); t_out(len("four and twenty"));
    float x[37], y[37]; for (int i = 0; i < 37; i++) x[i] = i, y[i] = 37 - i; vec(x, y, 37); vec(x, y, 36); float s = 0; for (int i = 0; i < 37; i++) s += x[i]; t_double(s);
    t_out(sse((unsigned char *)b)); bits bf = {0}; for (int i = 0; i < 9; i++) setbits(&bf, i); t_out(bf.a); t_out(bf.b); t_out(bf.c); t_out(bf.d);
    t_out(wide(0xfedcba9876543210, 0x123456789abcdef)); long double l = 1.25L; t_double((double)ld(2.5L, &l)); t_double((double)l);
    for (int i = 1; i < 8; i++) t_out(shapes(gp, i, i * 2));
    struct node n[5]; for (int i = 0; i < 5; i++) { n[i].v = i; n[i].next = i < 4 ? &n[i + 1] : 0; } t_out(walk(n)); t_out(walk(n));
    char big[300]; memset(big, 9, 300); memcpy(big + 100, b, 64); long t = 0; for (int i = 0; i < 300; i++) t = t * 31 + big[i]; t_out(t);
    return 3;
}
void *memcpy(void *d, const void *s, unsigned long n) { char *a = d; const char *b = s; while (n--) { *a++ = *b++; __asm__ volatile("" ::: "memory"); } return d; }
void *memset(void *d, int v, unsigned long n) { char *a = d; while (n--) { *a++ = v; __asm__ volatile("" ::: "memory"); } return d; }
