// The counter, and the rows that go to the console.
//
// A row is as the ones that Pebble's own bench prints: `@bench {json}`, in instructions, divided by the legs,
// passes or bytes that each sample holds.
#pragma once

#include "sys.h"

enum { SAMPLES = 1000, WARM_UP = 100, ROUNDS = WARM_UP + SAMPLES };
// The priority of whoever measures, and of helpers that take turns with it.
enum { PRIORITY = 50 };

// Lets this process, and all others, read the counter, and finds out what reading costs.
void counter_setup(void);

// Begins a row, whose first samples warm up and are left out; `add` takes what a sample counted, `finish`
// prints, with `per` of what the row is about in each sample. One row at a time.
void begin(u64 warm_up);
void add(u64 instructions);
void finish(const char *id, u64 per);

void say_number(u64 number);

// What the files measure.
void measure_calls(void);
void measure_rings(void);
void measure_files(void);
void measure_pipes(void);
void measure_processes(void);
void measure_pages(void);
void measure_timers(const void *vdso);
void measure_programs(void);
