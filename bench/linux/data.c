// Data: files in memory, and pipes with their reader.
#include "row.h"

#define BLOCK 65536
static const char PATH[] = "/ram/bench";
static char block[BLOCK];

// One call that reads or writes so many bytes of a file of 64 KB. Going back to its beginning is not counted.
static void blocks(i64 file, u64 bytes, int writing, u64 per, const char *id) {
    u64 left = 0;
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        if (left < bytes) rewind_file(file), left = BLOCK;
        u64 before = counter();
        i64 done = writing ? write(file, block, bytes) : read(file, block, bytes);
        add(counter() - before);
        if (done != (i64)bytes) must(-1, id);
        left -= bytes;
    }
    finish(id, per);
}

// Mapped, a byte of each page read, and unmapped.
static void mapped(i64 file, const char *id) {
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        const volatile char *start = map_file(file, BLOCK);
        must((i64)start, id);
        for (int at = 0; at < BLOCK; at += PAGE) (void)start[at];
        unmap((i64)start, BLOCK);
        add(counter() - before);
    }
    finish(id, BLOCK);
}

void measure_files(void) {
    i64 file = must(open(PATH, O_RDWR | O_CREAT | O_TRUNC), PATH);
    must(write(file, block, BLOCK), PATH);
    blocks(file, 1, 0, 1, "file.read.1");
    blocks(file, 4096, 0, 4096, "file.read.4k");
    blocks(file, BLOCK, 0, BLOCK, "file.read.64k");
    blocks(file, 4096, 1, 4096, "file.write.4k");
    mapped(file, "file.map.64k");
    close(file);
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        i64 opened = open(PATH, O_RDWR);
        close(opened);
        add(counter() - before);
        must(opened, PATH);
    }
    finish("file.open_close", 1);
}

static int ends[2];

static void writing(u64 bytes) {
    close(ends[0]);
    while (write(ends[1], block, bytes) > 0) continue;
}

// A sample is 64 KB: everything that writer and reader do until the reader has them.
static void stream(u64 bytes, const char *id) {
    must(sys3(SYS_pipe2, (i64)ends, 0, 0), "pipe2");
    i64 writer = helper(writing, bytes, PRIORITY);
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        u64 before = counter();
        for (u64 have = 0; have < BLOCK;) {
            u64 left = BLOCK - have;
            have += (u64)must(read(ends[0], block, left < bytes ? left : bytes), "read a pipe");
        }
        add(counter() - before);
    }
    finish(id, BLOCK);
    end_helper(writer);
    close(ends[0]), close(ends[1]);
}

void measure_pipes(void) {
    stream(4096, "pipe.bulk.4k");
    stream(BLOCK, "pipe.bulk.64k");
}
