/* What the tests of the C library share: a check that says where it failed, on the channel that the tests do not close. */
#include <pebble.h>
#include <stdbool.h>

void checked(bool holds, const char *file, int line, const char *what);
void same(const char *text, const char *wanted, const char *file, int line);
/* Says something where standard output may be closed. */
void say(const char *text);
/* Writes a text to a file that is opened so. */
void put(const char *path, int flags, const char *text);

#define CHECK(condition) checked(condition, __FILE_NAME__, __LINE__, #condition)
/* Fails with this error. */
#define FAILS(call, error) (errno = 0, CHECK((call) < 0 && errno == (error)))
#define SAME(text, wanted) same(text, wanted, __FILE_NAME__, __LINE__)

void test_streams(void);
void test_files(void);
void test_time(void);
void test_errors(void);
void test_formats(void);
void test_memory(void);
void cost_of_memory(void);
void cost_of_growth(void);
void test_fresh(void);
void test_threads(void);
void test_unwound(void);
void test_directories(void);
void test_pthreads(void);
void test_semaphores(void);
void test_places(void);
void test_poll(void);
void test_stacks(void);
void test_pages(void);
int trespass(const char *how);
/* A pipe: its two ends. */
void open_pipe(int ends[2]);
int voices(void);
int serve(void);
/* Says how many checks there were; the program's status. */
int sum_up(void);
