/* Streams that several threads use: a call's output is one piece, and whoever ends or copies a domain leaves no lock behind. */
#include "check.h"
#include <unistd.h>

enum { VOICES = 4, LINES = 100 };

static int ended;

static void say_lines(void *number) {
    int voice = (int)(long)number;
    char line[64];
    for (int n = 0; n < LINES; n++) {
        snprintf(line, sizeof line, "voice %d says %03d by %s", voice, n, "one call of many characters");
        switch (n % 4) {
        case 0: printf("voice %d says %03d by %s\n", voice, n, "one call of many characters"); break;
        case 1: puts(line); break;
        case 2: fwrite(strcat(line, "\n"), 1, strlen(line), stdout); break;
        case 3: fputs(strcat(line, "\n"), stdout); break;
        }
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
}

static void wait_for(int *word, int value) {
    for (int n = 0; n < 10000 && __atomic_load_n(word, __ATOMIC_SEQ_CST) < value; n++)
        msleep(1);
}

/* To standard output: whoever reads it looks at the lines. */
int voices(void) {
    for (long voice = 0; voice < VOICES; voice++)
        if (thread_create(say_lines, (void *)voice) < 0)
            return 1;
    wait_for(&ended, VOICES);
    return ended != VOICES;
}

static int step;
static const char place[] = "/ram/shared";
static FILE *shared;

/* Holds the stream while the others try, and gives it up at last. */
static void hold(void *unused) {
    (void)unused;
    flockfile(shared);
    putc_unlocked('<', shared);
    step = 1;
    for (int n = 0; n < 20; n++) {
        msleep(1);
        putc_unlocked('0' + n % 10, shared);
    }
    fputs(">\n", shared);
    funlockfile(shared);
}

static void pieces_are_whole(void) {
    char line[64];
    shared = fopen(place, "w+");
    CHECK(shared != NULL && ftrylockfile(shared) == 0);
    flockfile(shared);
    funlockfile(shared);
    funlockfile(shared);
    funlockfile(shared); /* it is not this thread's any more: nothing */
    CHECK(thread_create(hold, NULL) >= 0);
    wait_for(&step, 1);
    CHECK(ftrylockfile(shared) != 0 && fprintf(shared, "%s\n", "after it") == 9);
    CHECK(ftrylockfile(shared) == 0 && fseek(shared, 0, SEEK_SET) == 0);
    SAME(fgets(line, sizeof line, shared), "<01234567890123456789>\n");
    SAME(fgets(line, sizeof line, shared), "after it\n");
    funlockfile(shared);
    CHECK(getc_unlocked(shared) == EOF && fclose(shared) == 0);
    unlink(place);
}

static void keep(void *unused) {
    (void)unused;
    flockfile(stdout);
    step = 2;
    msleep(1000000);
}

static long pass_on(long index, long a, long b, long c, long d, long e) { return invoke_portal((int)index, a, b, c, d, e); }

/* Standard output is another thread's; in the copy it is nobody's. */
static void copies_have_no_others_locks(void) {
    CHECK(thread_create(keep, NULL) >= 0);
    wait_for(&step, 2);
    CHECK(ftrylockfile(stdout) != 0);
    int wait = portal_open("process.wait");
    int child = domain_fork(pass_on);
    if (child == 0) {
        printf("in the copy\n");
        fflush(stdout);
        void *block = malloc(1000);
        _exit(block != NULL && ftrylockfile(stdout) == 0 ? 7 : 8);
    }
    CHECK(child > 0 && invoke_portal_within(10L * TIME_HZ, wait, child) == 7);
    CHECK(ftrylockfile(stdout) != 0);
}

static _Thread_local int own = 1;
static int childs, kept_is_own;

/* Each time anew, whatever the compiler believes to know. */
__attribute__((noinline)) static char *thread_pointer(void) {
    __asm__ volatile("" ::: "memory");
    return PEBBLE_BLOCK() + PEBBLE_TP_OFFSET;
}

/* Where a thread's variables are, the compiler may have worked out before fork: so may the thread pointer be kept. */
static void copies_have_variables_of_their_own(void) {
    int *place = &own;
    char *kept = thread_pointer();
    __asm__ volatile("" : "+r"(place), "+r"(kept));
    if (fork() == 0) {
        kept_is_own = kept == thread_pointer();
        *place += 10;
        childs = own;
        step = 3;
        thread_exit();
    }
    wait_for(&step, 3);
    CHECK(kept_is_own && childs == 11 && own == 1);
}

void test_threads(void) {
    pieces_are_whole();
    copies_have_no_others_locks();
    copies_have_variables_of_their_own();
    _exit(sum_up()); /* not past standard output, which is taken */
}

static long print(long way) {
    if (way == 1) {
        flockfile(stdout);
        for (;;)
            ;
    }
    return ftrylockfile(stdout) != 0 ? -1 : printf("served\n");
}

/* A server whose callers have time limits, as no hold on a stream has. */
int serve(void) {
    if (portal_register("libc.print", "npi", print) < 0)
        return 1;
    thread_exit();
}

void test_unwound(void) {
    int portal = portal_open("libc.print");
    for (int n = 0; n < 20; n++) {
        CHECK(invoke_portal_within(TIME_HZ / 200, portal, 1) == -1 && portal_status_code(portal_status()) == PORTAL_TIMEOUT);
        CHECK(invoke_portal_within(10L * TIME_HZ, portal, 0) == 7);
    }
}
