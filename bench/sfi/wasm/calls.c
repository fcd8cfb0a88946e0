/* What calls of a module cost when wasm2c has made C of it: lines `NAME SAMPLE SAMPLE ...`, in nanoseconds of the processor. */
#include <stdio.h>
#include <time.h>

#include "calls.h"

#define CALLS 200000
#define INSTANCES 100
#define SAMPLES 21

struct Z_host_instance_t {
    int unused;
};

void Z_hostZ_null(struct Z_host_instance_t *host) { (void)host; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct Z_host_instance_t host;
static Z_calls_instance_t instance;

static void null(void) {
    /* Through a pointer, so that nothing is inlined. */
    void (*volatile pointer)(Z_calls_instance_t *) = Z_callsZ_null;
    void (*f)(Z_calls_instance_t *) = pointer;
    for (int i = 0; i < CALLS; i++)
        f(&instance);
}

static void six(void) {
    u64 (*volatile pointer)(Z_calls_instance_t *, u64, u64, u64, u64, u64, u64) = Z_callsZ_add;
    u64 (*f)(Z_calls_instance_t *, u64, u64, u64, u64, u64, u64) = pointer;
    for (u64 i = 0; i < CALLS; i++)
        f(&instance, i, 1, 2, 3, 4, 5);
}

static void instances(void) {
    for (int i = 0; i < INSTANCES; i++) {
        Z_calls_instance_t fresh;
        Z_calls_instantiate(&fresh, &host);
        Z_calls_free(&fresh);
    }
}

static void sample(const char *name, int n, void (*act)(void)) {
    act();
    printf("wasm2c.%s", name);
    for (int i = 0; i < SAMPLES; i++) {
        double start = now();
        act();
        printf(" %.3f", (now() - start) / n);
    }
    printf("\n");
}

int main(void) {
    wasm_rt_init();
    Z_calls_init_module();
    Z_calls_instantiate(&instance, &host);
    sample("null", CALLS, null);
    sample("6", CALLS, six);
    sample("instance", INSTANCES, instances);
    return 0;
}
