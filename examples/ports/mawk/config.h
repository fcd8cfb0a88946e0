/* What mawk's configure would find: the C library is picolibc, and there are no other programs to start or wait for. */
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_ISNAN 1
#define HAVE_MKTIME 1
#define HAVE_STRFTIME 1
#define HAVE_UNISTD_H 1
#define MAWK_RAND_MAX RAND_MAX
#define MAX__INT 0x7fffffff
#define MAX__LONG 0x7fffffffffffffff
#define MAX__UINT 0xffffffff
#define NAME_RANDOM "srandom/random"
#define SIZE_T_STDDEF_H 1
#define SYSTEM_NAME "pebble"
#define mawk_rand() random()
#define mawk_srand(seed) srandom(seed)
#define GCC_NORETURN __attribute__((noreturn))
#define GCC_PRINTFLIKE(text, values) __attribute__((format(printf, text, values)))
#define GCC_UNUSED __attribute__((unused))
#define OPT_TRACE 0
