/* mp3d-like: particles fly through a wind tunnel of cells, bounce off a body and collide with those they meet in a cell. */
#include <math.h>

#include "bench.h"

#define PARTICLES 20000
#define X 32
#define Y 16
#define Z 12
#define STEPS 8

struct particle {
    float at[3], speed[3];
};

struct cell {
    struct particle *waiting;
    int population, hits;
    float energy;
};

static struct particle *particles;
static struct cell space[X][Y][Z];
static const float ends[3] = {X, Y, Z};

static float spread(void) { return (float)bench_unit() - 0.5f; }

static void enter(struct particle *p, int anywhere) {
    p->at[0] = anywhere ? (float)bench_unit() * X : 0.01f;
    p->at[1] = (float)bench_unit() * Y;
    p->at[2] = (float)bench_unit() * Z;
    p->speed[0] = 0.6f + 0.1f * spread();
    p->speed[1] = 0.1f * spread();
    p->speed[2] = 0.1f * spread();
}

/* The body: a wedge on the tunnel's floor. */
static int inside(const float *at) { return at[0] > 12 && at[0] < 20 && at[1] < (at[0] - 12) * 0.5f; }

static void advance(struct particle *p) {
    float old[3] = {p->at[0], p->at[1], p->at[2]};
    for (int k = 0; k < 3; k++) {
        p->at[k] += p->speed[k];
        if (k > 0 && (p->at[k] < 0 || p->at[k] >= ends[k])) {
            p->at[k] = old[k];
            p->speed[k] = -p->speed[k];
        }
    }
    if (p->at[0] < 0 || p->at[0] >= X) {
        enter(p, 0);
    } else if (inside(p->at)) {
        memcpy(p->at, old, sizeof old);
        float along = p->speed[0] * 0.894f + p->speed[1] * 0.447f, away = p->speed[1] * 0.894f - p->speed[0] * 0.447f;
        p->speed[0] = 0.894f * along + 0.447f * away;
        p->speed[1] = 0.447f * along - 0.894f * away;
    }
}

/* Two particles part in a new direction with the speed at which they met. */
static void collide(struct particle *a, struct particle *b, struct cell *cell) {
    float middle[3], relative = 0, direction[3], length = 0;
    for (int k = 0; k < 3; k++) {
        middle[k] = (a->speed[k] + b->speed[k]) / 2;
        float d = a->speed[k] - b->speed[k];
        relative += d * d;
        direction[k] = spread();
        length += direction[k] * direction[k];
    }
    float scale = sqrtf(relative / (length + 1e-9f)) / 2;
    for (int k = 0; k < 3; k++) {
        a->speed[k] = middle[k] + direction[k] * scale;
        b->speed[k] = middle[k] - direction[k] * scale;
    }
    cell->hits++;
    cell->energy += relative;
}

static void step(void) {
    for (int x = 0; x < X; x++)
        for (int y = 0; y < Y; y++)
            for (int z = 0; z < Z; z++)
                space[x][y][z].waiting = NULL, space[x][y][z].population = 0;
    for (struct particle *p = particles; p < particles + PARTICLES; p++) {
        advance(p);
        struct cell *cell = &space[(int)p->at[0]][(int)p->at[1]][(int)p->at[2]];
        cell->population++;
        if (!cell->waiting) {
            cell->waiting = p;
        } else if (bench_random() % 3 == 0) {
            collide(cell->waiting, p, cell);
            cell->waiting = NULL;
        }
    }
}

static void prepare(void) { particles = bench_alloc(PARTICLES * sizeof *particles); }

static void work(void) {
    bench_seed(3);
    for (struct particle *p = particles; p < particles + PARTICLES; p++) {
        do
            enter(p, 1);
        while (inside(p->at));
    }
    memset(space, 0, sizeof space);
    for (int i = 0; i < STEPS; i++)
        step();
    for (int x = 0; x < X; x++)
        bench_add((uint64_t)space[x][2][3].population * 1000 + (uint64_t)space[x][5][5].hits);
}

BENCH_MAIN("mp3d", prepare, work)
