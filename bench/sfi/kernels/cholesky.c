/* cholesky: a sparse matrix in compressed columns is factored left-looking, and a system solved. */
#include <math.h>

#include "bench.h"

#define SIDE 34
#define N (SIDE * SIDE)
#define ROOM (N * (SIDE + 2))

static int start[N + 1], row[N * 5], factor_start[N + 1], factor_row[ROOM];
static double entry[N * 5], factor[ROOM], column[N], right[N];
static int head[N], next[N], at[N];

/* The lower triangle of a five-point grid. */
static void make_matrix(void) {
    int k = 0;
    bench_seed(17);
    for (int j = 0; j < N; j++) {
        start[j] = k;
        row[k] = j, entry[k++] = 4.5 + bench_unit();
        if (j % SIDE != SIDE - 1)
            row[k] = j + 1, entry[k++] = -1 + 0.1 * bench_unit();
        if (j + SIDE < N)
            row[k] = j + SIDE, entry[k++] = -1 + 0.1 * bench_unit();
        right[j] = bench_unit();
    }
    start[N] = k;
}

static void link_column(int j) {
    if (at[j] < factor_start[j + 1]) {
        int r = factor_row[at[j]];
        next[j] = head[r];
        head[r] = j;
    }
}

/* Column by column: what earlier columns of the row's list change is subtracted, then the column is scaled. */
static void factorize(void) {
    int k = 0;
    for (int j = 0; j < N; j++)
        head[j] = -1;
    for (int j = 0; j < N; j++) {
        int last = j + SIDE < N - 1 ? j + SIDE : N - 1;
        for (int i = j; i <= last; i++)
            column[i] = 0;
        for (int p = start[j]; p < start[j + 1]; p++)
            column[row[p]] = entry[p];
        for (int c = head[j]; c >= 0;) {
            int following = next[c], p = at[c];
            double multiple = factor[p];
            for (int q = p; q < factor_start[c + 1]; q++)
                column[factor_row[q]] -= multiple * factor[q];
            at[c]++;
            link_column(c);
            c = following;
        }
        double pivot = sqrt(column[j]);
        factor_start[j] = k;
        factor_row[k] = j, factor[k++] = pivot;
        for (int i = j + 1; i <= last; i++)
            if (column[i] != 0)
                factor_row[k] = i, factor[k++] = column[i] / pivot;
        factor_start[j + 1] = k;
        at[j] = factor_start[j] + 1;
        link_column(j);
    }
}

static void solve(double *x) {
    for (int j = 0; j < N; j++) {
        x[j] /= factor[factor_start[j]];
        for (int p = factor_start[j] + 1; p < factor_start[j + 1]; p++)
            x[factor_row[p]] -= factor[p] * x[j];
    }
    for (int j = N - 1; j >= 0; j--) {
        for (int p = factor_start[j] + 1; p < factor_start[j + 1]; p++)
            x[j] -= factor[p] * x[factor_row[p]];
        x[j] /= factor[factor_start[j]];
    }
}

static void prepare(void) { make_matrix(); }

static void work(void) {
    static double x[N];
    for (int i = 0; i < 8; i++) {
        factorize();
        memcpy(x, right, sizeof x);
        solve(x);
    }
    for (int j = 0; j < N; j += 37)
        bench_add_real(x[j]);
}

BENCH_MAIN("cholesky", prepare, work)
