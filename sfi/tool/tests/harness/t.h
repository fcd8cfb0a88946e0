/* What a corpus program may use: natively from native.c, confined as imports that loader.c provides. */
#ifndef T_H
#define T_H
void t_out(long value);
void t_text(const char *s);
void t_double(double d);
#ifdef __PBL__
typedef void *jmp_buf_t[8];
int pbl_setjmp(jmp_buf_t) __attribute__((returns_twice));
void pbl_longjmp(jmp_buf_t, int) __attribute__((noreturn));
#define T_SETJMP(b) pbl_setjmp(b)
#define T_LONGJMP(b, v) pbl_longjmp(b, v)
#else
#include <setjmp.h>
typedef jmp_buf jmp_buf_t;
#define T_SETJMP(b) _setjmp(b)
#define T_LONGJMP(b, v) longjmp(b, v)
#endif
void *memcpy(void *, const void *, unsigned long);
void *memset(void *, int, unsigned long);
int t_main(void);
#endif
