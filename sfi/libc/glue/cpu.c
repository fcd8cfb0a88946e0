/* What `__builtin_cpu_supports` and `__builtin_cpu_is` of both compilers ask: names and numbers are those of libgcc. Only what the verifier knows is said to
 * be there: AVX2 and less. */
enum { CMOV, MMX, POPCNT, SSE, SSE2, SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2, SSE4_A, FMA4, XOP, FMA, BMI = 16, BMI2, AES, PCLMUL };
enum { BASELINE = 95 - 32, V2, V3 };
enum { INTEL = 1, AMD, OTHER };

struct { unsigned vendor, type, subtype, features; } __cpu_model;
unsigned __cpu_features2[4];

static void ask(unsigned leaf, unsigned said[4]) {
    __asm__ volatile("cpuid" : "=a"(said[0]), "=b"(said[1]), "=c"(said[2]), "=d"(said[3]) : "0"(leaf), "2"(0));
}

__attribute__((constructor(101))) int __cpu_indicator_init(void) {
    unsigned first[4], one[4], seven[4] = {0}, more[4], features = 0;
    if (__cpu_model.vendor)
        return 0;
    ask(0, first);
    ask(1, one);
    if (first[0] >= 7)
        ask(7, seven);
    ask(0x80000001, more);
    /* The system keeps its upper halves, or the processor has none. */
    int avx = one[2] >> 27 & one[2] >> 28 & 1;
#define HAS(feature, word, bit) features |= ((word) >> (bit) & 1) << feature
    HAS(CMOV, one[3], 15), HAS(MMX, one[3], 23), HAS(SSE, one[3], 25), HAS(SSE2, one[3], 26);
    HAS(SSE3, one[2], 0), HAS(PCLMUL, one[2], 1), HAS(SSSE3, one[2], 9), HAS(SSE4_1, one[2], 19), HAS(SSE4_2, one[2], 20);
    HAS(POPCNT, one[2], 23), HAS(AES, one[2], 25), HAS(BMI, seven[1], 3), HAS(BMI2, seven[1], 8);
    if (avx)
        HAS(AVX, one[2], 28), HAS(FMA, one[2], 12), HAS(AVX2, seven[1], 5);
#define ALL(set) ((features & (set)) == (set))
    int v2 = ALL(1 << SSE3 | 1 << SSSE3 | 1 << SSE4_1 | 1 << SSE4_2 | 1 << POPCNT);
    int v3 = v2 && ALL(1 << AVX | 1 << AVX2 | 1 << BMI | 1 << BMI2 | 1 << FMA) && more[2] >> 5 & 1;
    __cpu_features2[BASELINE / 32] |= 1u << BASELINE % 32;
    __cpu_features2[V2 / 32] |= (unsigned)v2 << V2 % 32;
    __cpu_features2[V3 / 32] |= (unsigned)v3 << V3 % 32;
    __cpu_model.features = features;
    __cpu_model.vendor = first[1] == 0x756e6547 ? INTEL : first[1] == 0x68747541 ? AMD : OTHER;
    return 0;
}
