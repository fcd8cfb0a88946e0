/* alvinn-like: a network of 1220 inputs, 30 hidden and 30 output units learns a road by back-propagation, in single precision. */
#include <math.h>

#include "bench.h"

#define INPUTS 1220
#define HIDDEN 30
#define OUTPUTS 30
#define PATTERNS 12
#define EPOCHS 12

static float inputs[PATTERNS][INPUTS], wanted[PATTERNS][OUTPUTS];
static float to_hidden[HIDDEN][INPUTS + 1], hidden_change[HIDDEN][INPUTS + 1];
static float to_output[OUTPUTS][HIDDEN + 1], output_change[OUTPUTS][HIDDEN + 1];
static float hidden[HIDDEN + 1], hidden_error[HIDDEN], output[OUTPUTS], output_error[OUTPUTS];

static float squash(float x) { return 1.0f / (1.0f + expf(-x)); }

static void forward(const float *in) {
    for (int h = 0; h < HIDDEN; h++) {
        float sum = to_hidden[h][INPUTS];
        for (int i = 0; i < INPUTS; i++)
            sum += to_hidden[h][i] * in[i];
        hidden[h] = squash(sum);
    }
    for (int o = 0; o < OUTPUTS; o++) {
        float sum = to_output[o][HIDDEN];
        for (int h = 0; h < HIDDEN; h++)
            sum += to_output[o][h] * hidden[h];
        output[o] = squash(sum);
    }
}

static float backward(const float *in, const float *goal) {
    float error = 0;
    memset(hidden_error, 0, sizeof hidden_error);
    for (int o = 0; o < OUTPUTS; o++) {
        float difference = goal[o] - output[o];
        error += difference * difference;
        output_error[o] = difference * output[o] * (1 - output[o]);
        for (int h = 0; h < HIDDEN; h++)
            hidden_error[h] += output_error[o] * to_output[o][h];
    }
    for (int h = 0; h < HIDDEN; h++) {
        float delta = hidden_error[h] * hidden[h] * (1 - hidden[h]) * 0.02f;
        for (int i = 0; i < INPUTS; i++) {
            hidden_change[h][i] = delta * in[i] + 0.5f * hidden_change[h][i];
            to_hidden[h][i] += hidden_change[h][i];
        }
    }
    for (int o = 0; o < OUTPUTS; o++) {
        for (int h = 0; h < HIDDEN; h++) {
            output_change[o][h] = 0.1f * output_error[o] * hidden[h] + 0.5f * output_change[o][h];
            to_output[o][h] += output_change[o][h];
        }
    }
    return error;
}

static void prepare(void) {
    for (int p = 0; p < PATTERNS; p++) {
        for (int i = 0; i < INPUTS; i++)
            inputs[p][i] = (float)bench_unit();
        for (int o = 0; o < OUTPUTS; o++)
            wanted[p][o] = abs(o - p * 2) < 3 ? 0.9f : 0.1f;
    }
}

static void work(void) {
    bench_seed(52);
    for (int h = 0; h < HIDDEN; h++)
        for (int i = 0; i <= INPUTS; i++)
            to_hidden[h][i] = (float)bench_unit() * 0.1f - 0.05f;
    for (int o = 0; o < OUTPUTS; o++)
        for (int h = 0; h <= HIDDEN; h++)
            to_output[o][h] = (float)bench_unit() - 0.5f;
    memset(hidden_change, 0, sizeof hidden_change);
    memset(output_change, 0, sizeof output_change);
    float error = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        error = 0;
        for (int p = 0; p < PATTERNS; p++) {
            forward(inputs[p]);
            error += backward(inputs[p], wanted[p]);
        }
    }
    bench_add((uint64_t)(error * 100 + 0.5f));
}

BENCH_MAIN("alvinn", prepare, work)
