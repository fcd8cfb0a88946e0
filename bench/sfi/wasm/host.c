/* What wasm2c's output of a program is linked with: the little of WASI that the programs need, and `main`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define IMPORT(name) Z_wasi_snapshot_preview1Z_##name
#define EXPORT(name) Z_program##name
#define BAD_FILE 8
#define NOT_SUPPORTED 58
#define PIPE 70

struct Z_wasi_snapshot_preview1_instance_t {
    wasm_rt_memory_t *memory;
    int argc;
    char **argv;
};
typedef struct Z_wasi_snapshot_preview1_instance_t host;

/* Memory of the program, or the end: what the program passes is not believed. */
static void *at(host *h, u32 offset, u32 length) {
    if ((u64)offset + length > h->memory->size)
        abort();
    return h->memory->data + offset;
}

static void put(host *h, u32 offset, u32 value) { memcpy(at(h, offset, 4), &value, 4); }

static u32 get(host *h, u32 offset) {
    u32 value;
    memcpy(&value, at(h, offset, 4), 4);
    return value;
}

u32 IMPORT(args_sizes_get)(host *h, u32 count, u32 bytes) {
    u32 total = 0;
    for (int i = 0; i < h->argc; i++)
        total += (u32)strlen(h->argv[i]) + 1;
    put(h, count, (u32)h->argc);
    put(h, bytes, total);
    return 0;
}

u32 IMPORT(args_get)(host *h, u32 pointers, u32 text) {
    for (int i = 0; i < h->argc; i++) {
        u32 length = (u32)strlen(h->argv[i]) + 1;
        put(h, pointers + 4 * (u32)i, text);
        memcpy(at(h, text, length), h->argv[i], length);
        text += length;
    }
    return 0;
}

u32 IMPORT(environ_sizes_get)(host *h, u32 count, u32 bytes) {
    put(h, count, 0);
    put(h, bytes, 0);
    return 0;
}

u32 IMPORT(environ_get)(host *h, u32 pointers, u32 text) {
    (void)h, (void)pointers, (void)text;
    return 0;
}

u32 IMPORT(fd_write)(host *h, u32 file, u32 vectors, u32 count, u32 written) {
    u32 total = 0;
    if (file != 1 && file != 2)
        return BAD_FILE;
    for (u32 i = 0; i < count; i++) {
        u32 from = get(h, vectors + 8 * i), length = get(h, vectors + 8 * i + 4);
        total += (u32)fwrite(at(h, from, length), 1, length, file == 1 ? stdout : stderr);
    }
    put(h, written, total);
    return 0;
}

u32 IMPORT(fd_fdstat_get)(host *h, u32 file, u32 out) {
    unsigned char *state = at(h, out, 24);
    if (file > 2)
        return BAD_FILE;
    memset(state, 0, 24);
    state[0] = 2;
    memset(state + 8, 0xFF, 3);
    return 0;
}

u32 IMPORT(fd_close)(host *h, u32 file) {
    (void)h, (void)file;
    return 0;
}

u32 IMPORT(fd_seek)(host *h, u32 file, u64 offset, u32 whence, u32 out) {
    (void)h, (void)file, (void)offset, (void)whence, (void)out;
    return PIPE;
}

u32 IMPORT(fd_read)(host *h, u32 file, u32 vectors, u32 count, u32 out) {
    (void)h, (void)file, (void)vectors, (void)count, (void)out;
    return NOT_SUPPORTED;
}

/* No file can be opened; the C library asks all the same. */
u32 IMPORT(fd_prestat_get)(host *h, u32 file, u32 out) {
    (void)h, (void)file, (void)out;
    return BAD_FILE;
}

u32 IMPORT(fd_prestat_dir_name)(host *h, u32 file, u32 path, u32 length) {
    (void)h, (void)file, (void)path, (void)length;
    return BAD_FILE;
}

u32 IMPORT(fd_fdstat_set_flags)(host *h, u32 file, u32 flags) {
    (void)h, (void)file, (void)flags;
    return NOT_SUPPORTED;
}

u32 IMPORT(fd_renumber)(host *h, u32 from, u32 to) {
    (void)h, (void)from, (void)to;
    return NOT_SUPPORTED;
}

u32 IMPORT(path_open)(host *h, u32 file, u32 look, u32 path, u32 length, u32 how, u64 rights, u64 inherited, u32 flags,
                      u32 out) {
    (void)h, (void)file, (void)look, (void)path, (void)length, (void)how, (void)rights, (void)inherited, (void)flags;
    (void)out;
    return NOT_SUPPORTED;
}

u32 IMPORT(clock_time_get)(host *h, u32 clock, u64 precision, u32 out) {
    (void)clock, (void)precision;
    memset(at(h, out, 8), 0, 8);
    return 0;
}

void IMPORT(proc_exit)(host *h, u32 status) {
    (void)h;
    exit((int)status);
}

int main(int argc, char **argv) {
    static EXPORT(_instance_t) program;
    static host h;
    wasm_rt_init();
    EXPORT(_init_module)();
    EXPORT(_instantiate)(&program, &h);
    h.memory = EXPORT(Z_memory)(&program);
    h.argc = argc, h.argv = argv;
    EXPORT(Z__start)(&program);
    return 0;
}
