/* Runs the tests of a program (pebble-test.h), and tells of each in a line. */
#include <pebble-test.h>
#include <stdarg.h>
#include <stdio.h>

static struct pebble_test *first;
static const struct pebble_test *running;
static int failures; /* of the one that runs */

void pebble_test_add(struct pebble_test *test) {
    struct pebble_test **last = &first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = test;
}

/* A line is a test's only one, so nothing may break it. */
static void print_flat(const char *text) {
    for (; *text != '\0'; text++)
        putchar(*text == '\n' || *text == '\r' ? ' ' : *text);
}

void pebble_test_failed(const char *file, int line, const char *format, ...) {
    char why[256];
    if (failures++ > 0 || running == NULL)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    printf("@test FAILED %s: %s:%d: ", running->name, file, line);
    print_flat(why);
    putchar('\n');
}

static int is_wanted(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc <= 1;
}

int pebble_test_main(int argc, char **argv) {
    int count = 0, failed = 0;
    for (const struct pebble_test *test = first; test != NULL; test = test->next) {
        if (!is_wanted(test->name, argc, argv))
            continue;
        running = test;
        failures = 0;
        test->run();
        count++;
        failed += failures > 0;
        if (failures == 0)
            printf("@test ok %s\n", test->name);
        /* What a test that kills the program has not told is lost. */
        fflush(stdout);
    }
    printf("@test end %d\n", count);
    return failed > 0 || count == 0;
}
