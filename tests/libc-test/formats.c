/* Formats with numbers, alone and among others: each digit is right, and nothing eats the argument behind it. */
#include "check.h"
#include <math.h>
#include <stdarg.h>

static const struct {
    unsigned long high, low;
    const char *format, *wanted;
} quads[] = {
#include "quads.h"
};

static void prints(const char *wanted, const char *format, ...) {
    static char text[12000];
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    SAME(text, wanted);
    CHECK(count == (int)strlen(wanted));
}

static void printed(void) {
    for (size_t i = 0; i < sizeof quads / sizeof *quads; i++) {
        union {
            unsigned long words[2];
            long double value;
        } bits = {.words = {quads[i].low, quads[i].high}};
        prints(quads[i].wanted, quads[i].format, bits.value);
    }
    prints("1 2.500000 3 four 5.5 6", "%d %Lf %ld %s %g %c", 1, 2.5L, 3L, "four", 5.5, '6');
    prints("0.3333333333333333333333333333333333", "%.34Lf", 1 / 3.0L);
    prints("inf -INF  nan 7", "%Lf %LF %4Lg %d", HUGE_VALL, -HUGE_VALL, (long double)NAN, 7);
    prints("0x1p+0 0x1.8p-1 -0X1.ABCP+10 0x1.9p+3", "%La %La %LA %.1La", 1.0L, 0.75L, -0x1.abcp10L, 12.5L);
    prints("0x1.921fb54442d18469898cc51701b8p+1|0x0p+0|0x0001.00p+4", "%La|%La|%0#12.2La", 3.14159265358979323846264338327950288L, 0.0L, 16.0L);
    prints("  +1.5|-2.50   |100%|ab", "%+*.1Lf|%-*.*Lf|%d%%|%.*s", 6, 1.5L, 8, 2, -2.5L, 100, 2, "abc");
    prints("1e+10 10000000000 0.0001 1e-05", "%Lg %.11Lg %Lg %Lg", 1e10L, 1e10L, 0.0001L, 0.00001L);
    prints("3:1.0:18446744073709551615:hhd -1", "%u:%.1Lf:%lu:%s %hhd", 3u, 1.0L, ~0ul, "hhd", -1);
    int before = 0;
    char text[40];
    CHECK(sprintf(text, "%Lf%n%d", 1.0L, &before, 42) == 10 && before == 8);
    size_t room = 4;
    CHECK(snprintf(text, *(volatile size_t *)&room, "%Lf", 123456.0L) == 13);
    SAME(text, "123");
    /* The largest and the smallest there are. */
    static char largest[5000];
    CHECK(sprintf(largest, "%.0Lf", __LDBL_MAX__) == 4933 && strncmp(largest, "11897314953572317650857593266280070", 35) == 0);
    prints("6.475175119438025110924438958227646552e-4966", "%.36Le", __LDBL_DENORM_MIN__);
}

/* Rounded once, from what the number is, however many digits are asked for. */
static void doubles(void) {
    prints("2.67 1.00 0.12 0.38 2 4 -0", "%.2f %.2f %.2f %.2f %.0f %.0f %.0f", 2.675, 1.005, 0.125, 0.375, 2.5, 3.5, -0.5);
    prints("0.1000000000000000055511151231257827021181583404541015625|1.5e+00", "%.55f|%.1e", 0.1, 1.45000000000000018);
    prints("0.1 3.1415926535898 1e+15 9.007199254741e+15 5e-324", "%.14g %.14g %.14g %.14g %.1g", 0.1, M_PI, 1e15, 0x1p53, 0x1p-1074);
    prints("4.9406564584124654e-324 1.7976931348623157e+308", "%.17g %.17g", 0x1p-1074, __DBL_MAX__);
    prints("100000 1e+06 0.0001 1e-05 0 -0 1.00000", "%g %g %g %g %g %g %#g", 1e5, 1e6, 1e-4, 1e-5, 0.0, -0.0, 1.0);
    prints("   inf -INF nan|-0003.50|+2.5     |% 7", "%6f %F %g|%08.2f|%-+9.1f|%% %d", INFINITY, -INFINITY, (double)NAN, -3.5, 2.5, 7);
    prints("1:2.50:x 3 0x1.8p+0 4", "%d:%.2f:%s %ld %a %c", 1, 2.5, "x", 3L, 1.5, '4');
    static char largest[400];
    CHECK(sprintf(largest, "%.0f", __DBL_MAX__) == 309 && strncmp(largest, "17976931348623157081452742373170435679", 38) == 0);
}

static void scanned(void) {
    long double a = 0, b = 0;
    double d = 0, e = 0;
    int i = 0, j = 0, n = 0;
    char word[10];
    CHECK(sscanf("1.5 7", "%Lf %d", &a, &i) == 2 && a == 1.5L && i == 7);
    CHECK(sscanf("x=-2.5e3,rest", "x=%Lg,%9s", &a, word) == 2 && a == -2500 && strcmp(word, "rest") == 0);
    CHECK(sscanf("1 2.5 3 4.25", "%d %lf%n %*d %Le", &i, &d, &n, &b) == 3 && i == 1 && d == 2.5 && n == 5 && b == 4.25L);
    CHECK(sscanf("0x1.8p1 inf nan", "%La %Lf%Lf", &a, &b, &a) == 3 && b == HUGE_VALL && isnan(a));
    CHECK(sscanf("123456", "%3Lf%d%n", &a, &i, &n) == 2 && a == 123 && i == 456 && n == 6);
    CHECK(sscanf("7 abc 9", "%d %Lf %d", &i, &a, &j) == 1 && i == 7);
    CHECK(sscanf("", "%Lf", &a) == EOF && sscanf("  ", "%d %Lf", &i, &a) == EOF);
    CHECK(sscanf("5", "%d%Lf", &i, &a) == 1);
    CHECK(sscanf("[]ab] 1", "[%[]ab]] %Lf", word, &a) == 1 || strcmp(word, "]ab]") == 0);
    CHECK(sscanf("0.1", "%Lf", &a) == 1 && a == 0.1L);
    float f = 0;
    CHECK(sscanf("0x12.34,7123286235335863874;16777217.1", "%lf,%lg;%f", &d, &e, &f) == 3 && d == 18.203125 && e == 0x1.8b6bfc5c6a7ecp+62 && f == 0x1.000002p24f);
}

/* Each is the number nearest to the text, to even in the middle; the end is behind what is a number. */
static void converted(void) {
    static const struct {
        const char *text;
        double value;
        int length;
    } numbers[] = {
        {"7123286235335863874", 0x1.8b6bfc5c6a7ecp+62, 19}, {"0.000010619090923607825676", 0x1.64514be4d25b2p-17, 26}, {"0x12.34", 18.203125, 7},
        {"0x.8", 0.5, 4}, {"0x1.8p+", 1.5, 5}, {"0x", 0, 1}, {"-0x.", -0.0, 2}, {"infini", INFINITY, 3}, {" -Infinity", -INFINITY, 10}, {"1e", 1, 1},
        {"9007199254740993", 0x1p53, 16}, {"9007199254740993.0000000000000000000001", 0x1.0000000000001p53, 39}, {"1e400", INFINITY, 5},
        {"1.00000000000000011102230246251565404236316680908203125", 1, 55}, {"1.00000000000000011102230246251565404236316680908203126", 0x1.0000000000001p0, 55},
        {"2.4703282292062327208e-324", 0, 26}, {"2.4703282292062327209e-324", 0x1p-1074, 26}, {"0x1.8p-1075", 0x1p-1074, 11}, {"0x1p-1075", 0, 9},
        {"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792", INFINITY, 309},
        {"0x1.fffffffffffff7p1023", __DBL_MAX__, 23}, {"00012e-1x", 1.2, 8}, {".", 0, 0}, {"+", 0, 0}, {"0e99999999999", 0, 13}, {"1e-99999999999", 0, 14},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char *end;
        double value = strtod(numbers[i].text, &end);
        CHECK(memcmp(&value, &numbers[i].value, sizeof value) == 0);
        CHECK(end == numbers[i].text + numbers[i].length);
    }
    CHECK(isnan(strtod("nan(12)", NULL)) && strtof("16777217.00000000000001", NULL) == 0x1.000002p24f && strtof("16777217", NULL) == 0x1p24f);
    CHECK(strtold("0.1", NULL) == 0.1L && strtold("1e4932", NULL) == 1e4932L && strtold("0x1p-16494", NULL) == __LDBL_DENORM_MIN__);
    errno = 0;
    CHECK(strtod("1e308", NULL) == 1e308 && errno == 0 && isinf(strtod("1e309", NULL)) && errno == ERANGE);
}

/* The C library's own lose a carry above 2^20, and digits above 2^64. */
static void whole_numbers(void) {
    static const struct {
        double value, below, above;
    } numbers[] = {
        {-4194303.5, -4194304, -4194303}, {4194303.5, 4194303, 4194304}, {0x1.fffffffffffp+40, 0x1.ffffffffffp+40, 0x1p41},
        {-0x1.00000000001p+33, -0x1.0000000080p+33, -0x1p33}, {0.5, 0, 1}, {-0.25, -1, -0.0}, {-7, -7, -7}, {1e300, 1e300, 1e300},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        volatile double value = numbers[i].value;
        CHECK(floor(value) == numbers[i].below && ceil(value) == numbers[i].above);
    }
    CHECK(signbit(ceil(-0.25)) && signbit(floor(-0.0)) && !signbit(floor(0.25)) && isnan(floor(NAN)) && ceil(-INFINITY) == -INFINITY);
    volatile double large = -0x1.b4e6p+64, small = -1.75;
    CHECK(trunc(large) == large && floor(large) == large && trunc(small) == -1 && signbit(trunc(small / 2)));
}

void test_formats(void) {
    printed();
    doubles();
    whole_numbers();
    scanned();
    converted();
}
