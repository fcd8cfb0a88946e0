/* Streams that are closed, closed twice, opened anew, left to exit. */
#include "check.h"

static char content[64];

static const char *contents(const char *path) {
    FILE *file = fopen(path, "r");
    size_t count = file == NULL ? 0 : fread(content, 1, sizeof content - 1, file);
    content[count] = 0;
    if (file != NULL)
        fclose(file);
    return content;
}

/* All blocks are distinct from the streams, and from each other. */
static void memory_is_sound(void) {
    char *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(16 + i * 8);
        CHECK(blocks[i] != NULL && blocks[i] != (char *)stdin && blocks[i] != (char *)stdout && blocks[i] != (char *)stderr);
        memset(blocks[i], i, 16 + i * 8);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(blocks[i][0] == i && blocks[i][15 + i * 8] == i);
        free(blocks[i]);
    }
}

static void leave_unflushed(void) { fputs("printed by a handler of exit", fopen("/ram/at-exit", "w")); }

void test_streams(void) {
    char own[100];
    atexit(leave_unflushed);
    /* Closed twice: an error, and no block of memory. */
    FILE *first = fopen("/ram/stream", "w");
    CHECK(first != NULL && fputs("one", first) >= 0 && fclose(first) == 0);
    FAILS(fclose(first), EBADF);
    CHECK(fputc('x', first) == EOF && fflush(first) == 0);
    memory_is_sound();
    SAME(contents("/ram/stream"), "one");
    /* What a second one has written stays its own. */
    FILE *second = fopen("/ram/stream", "a");
    CHECK(setvbuf(second, own, _IOFBF, sizeof own) == 0 && fputs(" two", second) >= 0 && fclose(second) == 0);
    SAME(contents("/ram/stream"), "one two");
    second = fopen("/ram/stream", "w");
    CHECK(setvbuf(second, NULL, _IOFBF, 2000) == 0 && fputs("three", second) >= 0 && fclose(second) == 0);
    memory_is_sound();
    SAME(contents("/ram/stream"), "three");
    CHECK(fopen("/ram/stream", "q") == NULL && errno == EINVAL);
    CHECK(fopen("/ram/none", "r") == NULL && errno == ENOENT);
    CHECK(fopen("/ram/stream", "wx") == NULL && errno == EEXIST);
    CHECK(fdopen(open("/ram/stream", O_RDONLY), "r") != NULL);
    /* As many as there may be files, again and again. */
    for (int round = 0; round < 3; round++) {
        FILE *many[40];
        for (int i = 0; i < 40; i++)
            CHECK((many[i] = fopen("/ram/stream", "r")) != NULL);
        for (int i = 0; i < 40; i++)
            CHECK(fgetc(many[i]) == 't' && fclose(many[i]) == 0);
    }
    /* All that is open is written out. */
    FILE *both[2] = {fopen("/ram/a", "w"), fopen("/ram/b", "w+")};
    CHECK(fputs("a", both[0]) >= 0 && fputs("b", both[1]) >= 0 && fflush(NULL) == 0);
    SAME(contents("/ram/a"), "a");
    SAME(contents("/ram/b"), "b");
    rewind(both[1]);
    CHECK(fgetc(both[1]) == 'b' && fclose(both[1]) == 0 && fclose(both[0]) == 0);
    /* Standard streams, made another file's, and closed. */
    CHECK(setvbuf(stdout, NULL, _IOFBF, 700) == 0 && freopen("/ram/out", "w", stdout) == stdout);
    printf("to a file");
    CHECK(fclose(stdout) == 0);
    SAME(contents("/ram/out"), "to a file");
    FAILS(printf("nowhere"), errno);
    FAILS(fclose(stdout), EBADF);
    CHECK(freopen("/ram/again", "w", stdout) == stdout && fputs("again", stdout) >= 0 && fflush(stdout) == 0);
    SAME(contents("/ram/again"), "again");
    CHECK(freopen("/nowhere", "r", stdout) == NULL && errno == ENOENT);
    CHECK(fputc('x', stdout) == EOF);
    CHECK(fclose(stdin) == 0 && getchar() == EOF);
    memory_is_sound();
    fputs("left to exit", fopen("/ram/left", "w"));
}
