/* The calendar is the board's clock's, and a time that is waited for has passed afterwards. */
#include "check.h"
#include <sys/time.h>
#include <time.h>

void test_time(void) {
    struct timespec wall, later, now, resolution;
    struct timeval day;
    time_t seconds = time(NULL);
    CHECK(seconds > 1700000000); /* November 2023 */
    CHECK(clock_gettime(CLOCK_REALTIME, &wall) == 0 && wall.tv_sec >= seconds && wall.tv_nsec < 1000000000);
    CHECK(gettimeofday(&day, NULL) == 0 && day.tv_sec >= wall.tv_sec && day.tv_usec < 1000000);
    CHECK(gmtime(&seconds)->tm_year >= 123);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && now.tv_sec < 1700000000);
    CHECK(nanosleep(&(struct timespec){0, 20000001}, NULL) == 0);
    CHECK(clock_gettime(CLOCK_MONOTONIC, &later) == 0);
    CHECK((later.tv_sec - now.tv_sec) * 1000000000L + later.tv_nsec - now.tv_nsec >= 20000001);
    CHECK(usleep(100) == 0 && sleep(0) == 0);
    FAILS(nanosleep(&(struct timespec){0, 1000000000}, NULL), EINVAL);
    FAILS(nanosleep(&(struct timespec){-1, 0}, NULL), EINVAL);
    CHECK(clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_nsec == 1000000000 / TIME_HZ);
    FAILS(clock_gettime((clockid_t)77, &now), EINVAL);
}
