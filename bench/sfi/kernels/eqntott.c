/* eqntott-like: the truth table of Boolean equations is built and sorted by a comparison of terms, as the original spent its time. */
#include "bench.h"

#define INPUTS 14
#define OUTPUTS 6
#define TERMS (1 << INPUTS)

struct term {
    int16_t bits[INPUTS + OUTPUTS];
};

static struct term *terms;
static struct term **order;

/* The value of an equation: a small tree of gates chosen by its number. */
static int gate(const int16_t *in, unsigned seed, int depth) {
    if (depth == 0)
        return in[seed % INPUTS];
    int left = gate(in, seed * 5 + 1, depth - 1), right = gate(in, seed * 7 + 3, depth - 1);
    switch ((seed + (unsigned)depth) % 4) {
    case 0:
        return left & right;
    case 1:
        return left | right;
    case 2:
        return left ^ right;
    default:
        return left & !right;
    }
}

/* Two terms by their outputs first: 0, 1 and 2 for "does not matter". */
static int compare(const void *a, const void *b) {
    const struct term *x = *(struct term *const *)a, *y = *(struct term *const *)b;
    for (int i = INPUTS + OUTPUTS - 1; i >= 0; i--) {
        int left = x->bits[i], right = y->bits[i];
        if (left == 2)
            left = 0;
        if (right == 2)
            right = 0;
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

static void prepare(void) {
    terms = bench_alloc(TERMS * sizeof *terms);
    order = bench_alloc(TERMS * sizeof *order);
}

static void work(void) {
    bench_seed(23);
    for (unsigned t = 0; t < TERMS; t++) {
        struct term *term = &terms[t];
        order[t] = term;
        for (int i = 0; i < INPUTS; i++)
            term->bits[i] = (int16_t)(t >> i & 1);
        for (int o = 0; o < OUTPUTS; o++)
            term->bits[INPUTS + o] = (int16_t)gate(term->bits, (unsigned)o * 11 + 1, 3);
        if (bench_random() % 4 == 0)
            term->bits[bench_random() % INPUTS] = 2;
    }
    qsort(order, TERMS, sizeof *order, compare);
    unsigned distinct = 1;
    for (unsigned t = 1; t < TERMS; t++)
        distinct += compare(&order[t - 1], &order[t]) != 0;
    bench_add(distinct);
    for (unsigned t = 0; t < TERMS; t += 997)
        for (int i = 0; i < INPUTS + OUTPUTS; i++)
            bench_add((uint64_t)(order[t]->bits[i] % 2));
}

BENCH_MAIN("eqntott", prepare, work)
