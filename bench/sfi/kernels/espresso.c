/* espresso-like: a cover of cubes is expanded against its complement and made irredundant, in sets of bits on the heap. */
#include "bench.h"

#define VARIABLES 48
#define WORDS (VARIABLES / 16)
#define CUBES 260
#define ZEROS 420

/* Two bits a variable: 01 for 0, 10 for 1, 11 for both. */
struct cube {
    uint32_t set[WORDS];
    int size;
    struct cube *next;
};

static struct cube *new_cube(void) {
    struct cube *cube = bench_alloc(sizeof *cube);
    cube->next = NULL;
    return cube;
}

static int value(const struct cube *c, int v) { return (int)(c->set[v / 16] >> v % 16 * 2 & 3); }

static void raise_to(struct cube *c, int v, uint32_t bits) {
    c->set[v / 16] = (c->set[v / 16] & ~(3u << v % 16 * 2)) | bits << v % 16 * 2;
}

static int literals(const struct cube *c) {
    int n = 0;
    for (int w = 0; w < WORDS; w++) {
        uint32_t both = c->set[w] & c->set[w] >> 1 & 0x55555555u;
        while (both)
            both &= both - 1, n++;
    }
    return VARIABLES - n;
}

/* Is there a variable in which the two have nothing in common? */
static int disjoint(const struct cube *a, const struct cube *b) {
    for (int w = 0; w < WORDS; w++) {
        uint32_t common = a->set[w] & b->set[w];
        if (~(common | common >> 1) & 0x55555555u)
            return 1;
    }
    return 0;
}

static int contains(const struct cube *a, const struct cube *b) {
    for (int w = 0; w < WORDS; w++)
        if (b->set[w] & ~a->set[w])
            return 0;
    return 1;
}

static struct cube *random_list(int n, int full, int care) {
    struct cube *list = NULL;
    for (int i = 0; i < n; i++) {
        struct cube *c = new_cube();
        for (int v = 0; v < VARIABLES; v++)
            raise_to(c, v, full && (int)(bench_random() % 16) >= care ? 3 : 1 + bench_random() % 2);
        c->next = list;
        list = c;
    }
    return list;
}

/* Raises every literal that can be raised without meeting a zero. */
static void expand(struct cube *c, const struct cube *zeros) {
    for (int i = 0; i < VARIABLES; i++) {
        int v = (i * 29 + 5) % VARIABLES;
        uint32_t old = (uint32_t)value(c, v);
        if (old == 3)
            continue;
        raise_to(c, v, 3);
        for (const struct cube *z = zeros; z; z = z->next) {
            if (!disjoint(c, z)) {
                raise_to(c, v, old);
                break;
            }
        }
    }
    c->size = literals(c);
}

static int by_size(const void *a, const void *b) {
    const struct cube *x = *(struct cube *const *)a, *y = *(struct cube *const *)b;
    return x->size != y->size ? x->size - y->size : memcmp(x->set, y->set, sizeof x->set);
}

/* Sorts the cover and drops cubes that another contains. */
static struct cube *irredundant(struct cube *list, int *count) {
    struct cube *all[CUBES];
    int n = 0, kept = 0;
    for (; list; list = list->next)
        all[n++] = list;
    qsort(all, (size_t)n, sizeof *all, by_size);
    for (int i = 0; i < n; i++) {
        int covered = 0;
        for (int j = 0; j < kept && !covered; j++)
            covered = contains(all[j], all[i]);
        if (covered)
            free(all[i]);
        else
            all[kept++] = all[i];
    }
    for (int i = 0; i < kept; i++)
        all[i]->next = i + 1 < kept ? all[i + 1] : NULL;
    *count = kept;
    return kept > 0 ? all[0] : NULL;
}

static void drop(struct cube *list) {
    while (list) {
        struct cube *next = list->next;
        free(list);
        list = next;
    }
}

static void prepare(void) {}

static void work(void) {
    bench_seed(8);
    int count = 0;
    struct cube *ones = random_list(CUBES, 1, 14), *zeros = random_list(ZEROS, 1, 13);
    for (struct cube *c = ones; c; c = c->next) {
        for (struct cube **z = &zeros; *z;) {
            struct cube *meets = *z;
            if (disjoint(c, meets)) {
                z = &meets->next;
            } else {
                *z = meets->next;
                free(meets);
            }
        }
    }
    for (struct cube *c = ones; c; c = c->next)
        expand(c, zeros);
    ones = irredundant(ones, &count);
    bench_add((uint64_t)count);
    for (struct cube *c = ones; c; c = c->next)
        bench_add_bytes(c->set, sizeof c->set);
    drop(ones);
    drop(zeros);
}

BENCH_MAIN("espresso", prepare, work)
