/*
 * Tests that a program makes of itself:
 *
 *     #include <pebble-test.h>
 *
 *     TEST(sums) {
 *         EXPECT(1 + 1 == 2);
 *         EXPECT_EQ(sum(2, 2), 4);
 *         REQUIRE(open("/motd", O_RDONLY) >= 0); // else the test ends here
 *     }
 *
 *     TEST_MAIN
 *
 * The program runs all tests, in the order in which they stand, or those that its arguments name. It prints a line for each, which
 * `./pebble test` understands, and ends with 1 if one failed.
 */
#ifndef PEBBLE_TEST_H
#define PEBBLE_TEST_H

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pebble_test {
    const char *name;
    void (*run)(void);
    struct pebble_test *next;
};

void pebble_test_add(struct pebble_test *test);
/* The first failure of a test is told; it counts, whatever comes then. */
void pebble_test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
int pebble_test_main(int argc, char **argv);

#define TEST(called)                                                                                     \
    static void called(void);                                                                            \
    static struct pebble_test called##_test = {#called, called, 0};                                      \
    __attribute__((constructor)) static void called##_enters(void) { pebble_test_add(&called##_test); }  \
    static void called(void)

#define TEST_MAIN                                                                        \
    int main(int argc, char **argv) { return pebble_test_main(argc, argv); }

/* Each says whether it holds. */
#define EXPECT(condition)                                                                \
    __extension__({                                                                      \
        int holds_ = !!(condition);                                                      \
        if (!holds_)                                                                     \
            pebble_test_failed(__FILE__, __LINE__, "%s", #condition);                    \
        holds_;                                                                          \
    })
/* Whole numbers. */
#define EXPECT_EQ(found, wanted)                                                         \
    __extension__({                                                                      \
        long found_ = (long)(found), wanted_ = (long)(wanted);                           \
        if (found_ != wanted_)                                                           \
            pebble_test_failed(__FILE__, __LINE__, "%s is %ld, not %ld", #found, found_, wanted_); \
        found_ == wanted_;                                                               \
    })
#define EXPECT_STR(found, wanted)                                                        \
    __extension__({                                                                      \
        const char *found_ = (found), *wanted_ = (wanted);                               \
        int same_ = found_ != 0 && strcmp(found_, wanted_) == 0;                         \
        if (!same_)                                                                      \
            pebble_test_failed(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #found,   \
                               found_ != 0 ? found_ : "(null)", wanted_);                \
        same_;                                                                           \
    })
/* The test goes no further if that does not hold. */
#define REQUIRE(condition)                                                               \
    do                                                                                   \
        if (!EXPECT(condition))                                                          \
            return;                                                                      \
    while (0)

#ifdef __cplusplus
}
#endif
#endif
