/* Tests of a component in C: ./pebble test tested runs them. */
#include <fcntl.h>
#include <pebble-test.h>
#include <unistd.h>

static long sum(const long *numbers, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++)
        sum += numbers[i];
    return sum;
}

TEST(sums) {
    EXPECT_EQ(sum((long[]){1, 2, 3}, 3), 6);
    EXPECT_EQ(sum(0, 0), 0);
}

TEST(a_file_that_is_not_there) {
    EXPECT(open("/none", O_RDONLY) < 0);
}

TEST(a_file_is_read) {
    char line[21] = {0};
    int file = open("/share/block", O_RDONLY);
    REQUIRE(file >= 0);
    EXPECT_EQ(read(file, line, 20), 20);
    EXPECT_STR(line, "this is line 000001\n");
    close(file);
}

TEST_MAIN
