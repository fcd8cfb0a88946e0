/* mozjpeg's configuration of what only its sources see. */
#define BUILD "bench"
#define INLINE inline __attribute__((always_inline))
#define HIDDEN __attribute__((visibility("hidden")))
#define THREAD_LOCAL
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define HAVE_BUILTIN_CTZL 1
#define FALLTHROUGH
#define PACKAGE_NAME "mozjpeg"
#define VERSION "bench"
