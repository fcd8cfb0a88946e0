/* water: molecules of three atoms move under Lennard-Jones and Coulomb forces in a periodic box, pair by pair. */
#include <math.h>

#include "bench.h"

#define SIDE 5
#define MOLECULES (SIDE * SIDE * SIDE)
#define ATOMS 3
#define STEPS 5
#define BOX (SIDE * 3.1)

struct atom {
    double at[3], speed[3], force[3];
};

struct molecule {
    struct atom atoms[ATOMS];
    struct molecule *next;
};

static struct molecule *first;
static const double charge[ATOMS] = {-0.834, 0.417, 0.417}, mass[ATOMS] = {16, 1, 1};

static double wrap(double d) { return d > BOX / 2 ? d - BOX : d < -BOX / 2 ? d + BOX : d; }

/* The force between two molecules; returns the energy. */
static double pair(struct molecule *a, struct molecule *b) {
    double energy = 0, shift[3], far = 0;
    for (int k = 0; k < 3; k++) {
        shift[k] = a->atoms[0].at[k] - b->atoms[0].at[k];
        shift[k] -= wrap(shift[k]);
        double d = a->atoms[0].at[k] - b->atoms[0].at[k] - shift[k];
        far += d * d;
    }
    if (far > BOX * BOX / 4)
        return 0;
    for (int i = 0; i < ATOMS; i++) {
        for (int j = 0; j < ATOMS; j++) {
            struct atom *x = &a->atoms[i], *y = &b->atoms[j];
            double d[3], square = 0;
            for (int k = 0; k < 3; k++) {
                d[k] = x->at[k] - y->at[k] - shift[k];
                square += d[k] * d[k];
            }
            double inverse = 1 / square, root = sqrt(inverse), push = 33.2 * charge[i] * charge[j] * root;
            energy += push;
            push *= inverse;
            if (i == 0 && j == 0) {
                double six = 30 * inverse * inverse * inverse;
                energy += 4 * 0.15 * (six * six - six);
                push += 24 * 0.15 * (2 * six * six - six) * inverse;
            }
            for (int k = 0; k < 3; k++) {
                x->force[k] += push * d[k];
                y->force[k] -= push * d[k];
            }
        }
    }
    return energy;
}

/* Springs hold the two light atoms at their distance from the heavy one. */
static void bonds(struct molecule *m) {
    for (int i = 1; i < ATOMS; i++) {
        struct atom *x = &m->atoms[0], *y = &m->atoms[i];
        double d[3], square = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = y->at[k] - x->at[k];
            square += d[k] * d[k];
        }
        double length = sqrt(square), pull = 40 * (length - 0.96) / length;
        for (int k = 0; k < 3; k++) {
            x->force[k] += pull * d[k];
            y->force[k] -= pull * d[k];
        }
    }
}

static void move(struct molecule *m, double step) {
    for (int i = 0; i < ATOMS; i++) {
        for (int k = 0; k < 3; k++) {
            struct atom *a = &m->atoms[i];
            a->speed[k] += a->force[k] / mass[i] * step;
            a->at[k] += a->speed[k] * step;
            a->force[k] = 0;
        }
    }
}

static void place(void) {
    static const double shape[ATOMS][3] = {{0, 0, 0}, {0.96, 0, 0}, {-0.24, 0.93, 0}};
    struct molecule *m = first;
    bench_seed(100);
    for (int n = 0; n < MOLECULES; n++, m = m->next) {
        int cell[3] = {n % SIDE, n / SIDE % SIDE, n / SIDE / SIDE};
        for (int i = 0; i < ATOMS; i++) {
            for (int k = 0; k < 3; k++) {
                m->atoms[i].at[k] = cell[k] * 3.1 + shape[i][k] + 0.1 * bench_unit();
                m->atoms[i].speed[k] = bench_unit() * 0.02 - 0.01;
                m->atoms[i].force[k] = 0;
            }
        }
    }
}

static void prepare(void) {
    for (int n = 0; n < MOLECULES; n++) {
        struct molecule *m = bench_alloc(sizeof *m);
        m->next = first;
        first = m;
    }
}

static void work(void) {
    double energy = 0;
    place();
    for (int step = 0; step < STEPS; step++) {
        energy = 0;
        for (struct molecule *a = first; a; a = a->next) {
            bonds(a);
            for (struct molecule *b = a->next; b; b = b->next)
                energy += pair(a, b);
        }
        for (struct molecule *m = first; m; m = m->next)
            move(m, 0.002);
    }
    bench_add_real(energy / 1000);
}

BENCH_MAIN("water", prepare, work)
