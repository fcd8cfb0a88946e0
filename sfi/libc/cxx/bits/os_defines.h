/* libstdc++'s own asks glibc's headers; musl has no weak thread functions to look for. */
#ifndef _GLIBCXX_OS_DEFINES
#define _GLIBCXX_OS_DEFINES 1
#define __NO_CTYPE 1
#include <features.h>
#define _GLIBCXX_GTHREAD_USE_WEAK 0
#define _GLIBCXX_NATIVE_THREAD_ID pthread_self()
#endif
