/*
 * libc-test GROUP: holds the C library of components against the standard, where ported programs have met it. `filter` is what a filter does
 * that is careful about its end: it copies, closes its streams, and then needs memory; `place` asks where in a pipe it is; `copy FROM TO` copies;
 * `free-twice` is a mistake; `voices` are threads that print; `serve` is a
 * server that `unwound` calls; `trespass HOW` uses pages that are not its.
 */
#include "check.h"

static int checks, failed, channel;

void say(const char *text) { write(channel, text, strlen(text)); }

void checked(bool holds, const char *file, int line, const char *what) {
    char text[200];
    checks++;
    if (holds)
        return;
    failed++;
    snprintf(text, sizeof text, "%s:%d: %s (errno %d)\n", file, line, what, errno);
    say(text);
}

void same(const char *text, const char *wanted, const char *file, int line) {
    checked(text != NULL && strcmp(text, wanted) == 0, file, line, text == NULL ? "nothing" : text);
}

/* As minigzip and mawk end. */
static int filter(void) {
    int c;
    while ((c = getchar()) != EOF)
        putchar(c);
    if (fclose(stdout) != 0 || fclose(stdin) != 0)
        return 1;
    char *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc(512);
        memset(blocks[i], 0x5a, 512);
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    printf("not to be seen");
    return 0;
}

/* A pipe has no places: who asks for one loses nothing of what has been read. */
static int ask_for_a_place(void) {
    int first = getchar();
    if (ftell(stdin) != -1 || errno != ESPIPE || fseek(stdin, 0, SEEK_SET) != -1 || setvbuf(stdin, NULL, _IONBF, 0) != 0)
        return 1;
    fflush(stdin);
    for (int c = first; c != EOF; c = getchar())
        putchar(c);
    return 0;
}

static int copy(const char *from, const char *to) {
    static char bytes[4096];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    size_t count;
    if (in == NULL || out == NULL)
        return perror(in == NULL ? from : to), 1;
    while ((count = fread(bytes, 1, sizeof bytes, in)) > 0)
        if (fwrite(bytes, 1, count, out) != count)
            return perror(to), 1;
    return fclose(in) < 0 || fclose(out) < 0;
}

static int variables(char **names) {
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL)
            printf("%s=%s\n", *names, getenv(*names));
        else
            printf("%s is not set\n", *names);
    return 0;
}

/* What is written then is lost, and the program hears so. */
static int vanish(const char *path, bool late) {
    if (late && write(STDOUT_FILENO, "kept", 4) != 4)
        return 1;
    if (unlink(path) < 0)
        return 2;
    if (write(STDOUT_FILENO, "lost", 4) >= 0)
        return 3;
    perror("lost");
    return 0;
}

static const struct {
    const char *name;
    void (*test)(void);
} groups[] = {
    {"streams", test_streams}, {"files", test_files},     {"time", test_time},
    {"errors", test_errors},   {"formats", test_formats}, {"memory", test_memory},
    {"cost", cost_of_memory},  {"growth", cost_of_growth}, {"fresh", test_fresh},
    {"threads", test_threads}, {"unwound", test_unwound},
    {"directories", test_directories}, {"pthreads", test_pthreads}, {"semaphores", test_semaphores},
    {"places", test_places}, {"poll", test_poll}, {"stacks", test_stacks},
    {"pages", test_pages},
};

int sum_up(void) {
    char text[64];
    snprintf(text, sizeof text, "libc-test: %d checks, %d failed\n", checks, failed);
    say(text);
    return failed > 0 || checks == 0;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "filter") == 0)
        return filter();
    if (strcmp(name, "place") == 0)
        return ask_for_a_place();
    if (strcmp(name, "voices") == 0)
        return voices();
    if (strcmp(name, "serve") == 0)
        return serve();
    if (strcmp(name, "free-twice") == 0) {
        void *volatile block = malloc(100), *volatile next = malloc(100);
        free(block);
        free(block);
        free(next);
        return 0;
    }
    if (strcmp(name, "copy") == 0 && argc == 4)
        return copy(argv[2], argv[3]);
    if (strcmp(name, "env") == 0)
        return variables(argv + 2);
    if (strcmp(name, "trespass") == 0 && argc == 3)
        return trespass(argv[2]);
    if (strcmp(name, "vanish") == 0 && argc >= 3)
        return vanish(argv[2], argc > 3);
    channel = open("/dev/console", O_WRONLY);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strcmp(name, groups[i].name) == 0)
            groups[i].test();
    return sum_up();
}
