/* The system's libstdc++ was configured for glibc: what musl has not got is taken back. */
#ifndef PBL_CXXCONFIG_H
#define PBL_CXXCONFIG_H
#include_next <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
#undef _GLIBCXX_USE_UCHAR_C8RTOMB_MBRTOC8_CXX20
#undef _GLIBCXX_USE_UCHAR_C8RTOMB_MBRTOC8_FCHAR8_T
#endif
