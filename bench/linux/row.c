// The counter, and the statistics of a row.
//
// The kernel stops the instruction counter of the processor unless an event of `perf` uses it. So one is
// opened, for the whole machine, and stays open; then every process is given leave to read the counter
// itself. The other order leaves it stopped.
#include "row.h"

static u64 samples[SAMPLES];
static u64 count, skipped;
static u64 base;

static i64 perf_event(u64 config) {
    static struct {
        unsigned type, size;
        u64 config, rest[14];
    } attributes;
    attributes.size = sizeof attributes;
    attributes.config = config;
    return sys6(SYS_perf_event_open, (i64)&attributes, -1, 0, -1, 0, 0);
}

void counter_setup(void) {
    enum { CYCLES = 0, INSTRUCTIONS = 1 };
    must(perf_event(INSTRUCTIONS), "perf_event_open");
    must(perf_event(CYCLES), "perf_event_open");
    i64 leave = must(open("/proc/sys/kernel/perf_user_access", O_RDWR), "open perf_user_access");
    must(write(leave, "2\n", 2), "write perf_user_access");
    close(leave);
    base = ~0ul;
    for (int i = 0; i < 100; i++) {
        u64 before = counter();
        u64 took = counter() - before;
        if (took < base) base = took;
    }
    if (base == 0 || base > 100) must(-1, "the instruction counter does not run");
}

void begin(u64 warm_up) {
    // Otherwise interrupts of the console, which shows the last row, would be in this one.
    rest();
    count = 0;
    skipped = warm_up;
}

void add(u64 instructions) {
    if (skipped > 0)
        skipped--;
    else if (count < SAMPLES)
        samples[count++] = instructions > base ? instructions - base : 0;
}

// Shell's sort: there are few.
static void sort(u64 *values, u64 n) {
    for (u64 gap = n / 2; gap > 0; gap /= 2)
        for (u64 i = gap; i < n; i++) {
            u64 value = values[i], at = i;
            for (; at >= gap && values[at - gap] > value; at -= gap) values[at] = values[at - gap];
            values[at] = value;
        }
}

void say_number(u64 number) {
    char text[24];
    int at = sizeof text - 1;
    text[at] = 0;
    do text[--at] = (char)('0' + number % 10);
    while (number /= 10);
    say(text + at);
}

// In thousandths.
static void field(const char *name, u64 milli) {
    char digits[] = ".000";
    for (int at = 3; at > 0; at--, milli /= 10) digits[at] = (char)('0' + milli % 10);
    say(",\"");
    say(name);
    say("\":");
    say_number(milli);
    say(digits);
}

void finish(const char *id, u64 per) {
    u64 *values = samples, n = count, sum = 0;
    if (n == 0) must(-1, id);
    sort(values, n);
    for (u64 i = 0; i < n; i++) sum += values[i];
    say("@bench {\"id\":\"");
    say(id);
    say("\",\"unit\":\"instructions\",\"n\":");
    say_number(n);
    field("min", values[0] * 1000 / per);
    field("mean", sum * 1000 / per / n);
    field("p50", values[(n * 50 + 99) / 100 - 1] * 1000 / per);
    field("p99", values[(n * 99 + 99) / 100 - 1] * 1000 / per);
    field("max", values[n - 1] * 1000 / per);
    say("}\n");
}
