/* core: what embedded programs do, in equal parts: a list sorted and searched, a matrix of integers, a state machine over text. */
#include "bench.h"

#define NODES 300
#define ORDER 24
#define TEXT 2000

struct node {
    struct node *next;
    int16_t key, value;
};

static struct node nodes[NODES];
static int16_t left[ORDER][ORDER], right[ORDER][ORDER];
static int32_t product[ORDER][ORDER];
static char text[TEXT + 1];

enum state { START, SIGN, INTEGER, POINT, FRACTION, EXPONENT, POWER, INVALID, STATES };

typedef int order(const struct node *, const struct node *);

static int by_key(const struct node *a, const struct node *b) { return a->key - b->key; }
static int by_value(const struct node *a, const struct node *b) { return a->value - b->value; }

/* Merge sort of a list, from the bottom up. */
static struct node *sort(struct node *list, order *compare) {
    for (int run = 1;; run *= 2) {
        struct node *rest = list, *tail = NULL;
        int merges = 0;
        list = NULL;
        while (rest) {
            struct node *a = rest, *b = rest;
            int as = 0, bs = run;
            merges++;
            while (as < run && b)
                as++, b = b->next;
            while (as > 0 || (bs > 0 && b)) {
                struct node *least;
                if (as > 0 && (bs == 0 || !b || compare(a, b) <= 0))
                    least = a, a = a->next, as--;
                else
                    least = b, b = b->next, bs--;
                if (tail)
                    tail->next = least;
                else
                    list = least;
                tail = least;
            }
            rest = b;
        }
        if (tail)
            tail->next = NULL;
        if (merges <= 1)
            return list;
    }
}

static struct node *reverse(struct node *list) {
    struct node *done = NULL;
    while (list) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static uint32_t lists(void) {
    struct node *list = NULL;
    uint32_t sum = 0;
    for (int i = 0; i < NODES; i++) {
        nodes[i] = (struct node){list, (int16_t)(i * 7919 % 1009), (int16_t)(i * 104729 % 997)};
        list = &nodes[i];
    }
    list = sort(list, by_key);
    for (int key = 0; key < 100; key++) {
        struct node *n = list;
        while (n && n->key < key * 10)
            n = n->next;
        sum += n ? (uint32_t)n->value : 1;
        if (key % 8 == 0)
            list = reverse(reverse(list));
    }
    list = sort(list, by_value);
    return sum * 31 + (uint32_t)list->key;
}

static uint32_t matrices(void) {
    uint32_t sum = 0;
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) {
            left[i][j] = (int16_t)((i * 31 + j * 17) % 255 - 127);
            right[i][j] = (int16_t)((i * 13 + j * 29) % 255 - 127);
        }
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) {
            int32_t total = 0;
            for (int k = 0; k < ORDER; k++)
                total += left[i][k] * right[k][j];
            product[i][j] = total;
        }
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++)
            sum += (uint32_t)(product[i][j] >> 2 & 15) * (uint32_t)(product[i][j] >> 5 & 127);
    return sum;
}

static enum state step(enum state state, char c) {
    int digit = c >= '0' && c <= '9';
    switch (state) {
    case START:
        return digit ? INTEGER : c == '+' || c == '-' ? SIGN : c == '.' ? POINT : INVALID;
    case SIGN:
        return digit ? INTEGER : c == '.' ? POINT : INVALID;
    case INTEGER:
        return digit ? INTEGER : c == '.' ? POINT : c == 'e' ? EXPONENT : INVALID;
    case POINT:
    case FRACTION:
        return digit ? FRACTION : c == 'e' ? EXPONENT : INVALID;
    case EXPONENT:
        return digit || c == '-' ? POWER : INVALID;
    case POWER:
        return digit ? POWER : INVALID;
    default:
        return INVALID;
    }
}

static uint32_t states(void) {
    uint32_t ends[STATES] = {0}, sum = 0;
    enum state state = START;
    for (const char *c = text; *c; c++) {
        if (*c == ',') {
            ends[state]++;
            state = START;
        } else {
            state = step(state, *c);
        }
    }
    for (int s = 0; s < STATES; s++)
        sum = sum * 257 + ends[s];
    return sum;
}

static void prepare(void) {
    static const char *const parts[] = {"5012", "-874", "+122", "35.5", "1.e5", "-.1e-5", "T0.3e", "87.x", "+7e9", "0.5"};
    for (int i = 0; i < TEXT;) {
        const char *part = parts[bench_random() % 10];
        while (*part && i < TEXT)
            text[i++] = *part++;
        if (i < TEXT)
            text[i++] = ',';
    }
}

static void work(void) {
    for (int i = 0; i < 150; i++) {
        bench_add(lists());
        bench_add(matrices());
        bench_add(matrices());
        for (int j = 0; j < 5; j++)
            bench_add(states());
    }
}

BENCH_MAIN("core", prepare, work)
