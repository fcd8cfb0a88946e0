// Whole programs: an interpreter, a database, a pipeline, a shell that starts others.
//
// They are built from the sources of Pebble's components, and do the same work: `bench/macro/`. A sample is
// all that happens from the start of the first program to the end of the last. What they read is in memory,
// and what they print goes to a file there. A program that fails ends the bench, and so does a row that
// prints nothing where it should.
#include "row.h"

enum { RUNS = 1 + 5, MOST = 3 };

// Programs of which each reads what the one before it prints.
struct row {
    const char *id;
    const char *const *programs[MOST];
    // What the first reads. Who reads nothing has a file there nevertheless.
    const char *in;
    int prints;
};

// A program and its standard files.
struct program {
    const char *const *arguments;
    i64 in, out;
};

#define TEXT "/ram/text"
static const char OUT[] = "/ram/out";
// What the database leaves behind, also if it is interrupted.
static const char *const DATABASE[] = {"/ram/db", "/ram/db-journal"};

static const char *const PREPARE[] = {"/bin/lua", "/share/macro/prepare.lua", 0};
static const char *const WORDS[] = {"/bin/lua", "/share/macro/words.lua", TEXT, 0};
static const char *const SQLITE[] = {"/bin/sqlite3", "/ram/db", 0};
static const char *const PACK[] = {"/bin/minigzip", 0};
static const char *const UNPACK[] = {"/bin/minigzip", "-d", 0};
static const char *const SHELL[] = {"/bin/sh", 0};

static const struct row PREPARATION = {"prepare", {PREPARE}, PREPARE[1], 0};
static const struct row ROWS[] = {
    {"macro.lua", {WORDS}, TEXT, 1},
    {"macro.sqlite", {SQLITE}, "/ram/load.sql", 1},
    {"macro.gzip", {PACK, UNPACK, PACK}, TEXT, 1},
    {"macro.spawn", {SHELL}, "/ram/spawn.sh", 0},
};

static char stack[4 * PAGE] __attribute__((aligned(16)));

// In the child. All other files close themselves.
static void become(const void *what) {
    static const char *const environment[] = {"PATH=/bin", "HOME=/ram", 0};
    const struct program *program = what;
    sys3(SYS_dup3, program->in, 0, 0);
    sys3(SYS_dup3, program->out, 1, 0);
    execve(program->arguments[0], program->arguments, environment);
    exit(127);
}

static i64 start(const char *const *arguments, i64 in, i64 out) {
    const struct program program = {arguments, in, out};
    return must(vfork(become, &program, stack + sizeof stack), arguments[0]);
}

// The error that is told of a program is its status, as `wait4` has it.
static void wait_for_success(i64 pid, const char *name) {
    int status = 0;
    must(sys6(SYS_wait4, pid, (i64)&status, 0, 0, 0, 0), name);
    must(-status, name);
}

// What it took.
static u64 run(const struct row *row) {
    i64 pids[MOST];
    int many = 0;
    for (int i = 0; i < 2; i++) sys3(SYS_unlinkat, AT_FDCWD, (i64)DATABASE[i], 0);
    i64 in = must(open(row->in, O_RDWR | O_CLOEXEC), row->in);
    i64 out = must(open(OUT, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC), OUT);
    // The dead of the sample before are buried.
    rest();
    u64 before = counter();
    for (; many + 1 < MOST && row->programs[many + 1]; many++) {
        int ends[2];
        must(sys3(SYS_pipe2, (i64)ends, O_CLOEXEC, 0), "pipe2");
        pids[many] = start(row->programs[many], in, ends[1]);
        close(in), close(ends[1]);
        in = ends[0];
    }
    pids[many] = start(row->programs[many], in, out);
    close(in);
    for (int i = 0; i <= many; i++) wait_for_success(pids[i], row->programs[i][0]);
    u64 took = counter() - before;
    if (row->prints && file_end(out) == 0) must(-1, row->id);
    close(out);
    return took;
}

void measure_programs(void) {
    run(&PREPARATION);
    for (u64 i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        begin(1);
        for (int n = 0; n < RUNS; n++) add(run(&ROWS[i]));
        finish(ROWS[i].id, 1);
    }
}
