// Processes and memory: starting a program, copying a process, the first touch of a page.
#include "row.h"

static char stack[4 * PAGE] __attribute__((aligned(16)));

static void become(const void *path) {
    static const char *const arguments[] = {"small", 0};
    execve(path, arguments, 0);
    exit(127);
}

// Between samples, so that the dead are buried.
static void now_and_then(int i) {
    if (i % 16 == 0) rest();
}

// A copy of this process; its end is counted or not.
static void copies(int end, const char *id) {
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        now_and_then(i);
        u64 before = counter();
        i64 child = fork();
        if (child == 0) exit(0);
        if (end) wait_for(child);
        add(counter() - before);
        must(child, "fork");
        if (!end) wait_for(child);
    }
    finish(id, 1);
}

void measure_processes(void) {
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i++) {
        now_and_then(i);
        int status = 0;
        u64 before = counter();
        i64 child = vfork(become, "/small", stack + sizeof stack);
        sys6(SYS_wait4, child, (i64)&status, 0, 0, 0, 0);
        add(counter() - before);
        must(child, "clone");
        if (status) must(-1, "start /small");
    }
    finish("spawn.small", 1);

    copies(0, "domain_fork");
    copies(1, "fork.wait");
}

void measure_pages(void) {
    enum { PAGES = 64 };
    begin(WARM_UP);
    for (int i = 0; i < ROUNDS; i += PAGES) {
        volatile char *pages = map(PAGES * PAGE, 0);
        must((i64)pages, "mmap");
        for (int n = 0; n < PAGES; n++) {
            u64 before = counter();
            pages[n * PAGE] = 1;
            add(counter() - before);
        }
        must(sys3(SYS_munmap, (i64)pages, PAGES * PAGE, 0), "munmap");
    }
    finish("vm.fault.dirty", 1);
}
