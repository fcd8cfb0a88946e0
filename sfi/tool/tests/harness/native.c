/* The native side of the differential tests. */
#include <stdio.h>
extern int t_main(void);
void t_out(long v) { printf("%ld\n", v); }
void t_text(const char *s) { printf("%s\n", s); }
void t_double(double d) { printf("%a\n", d); }
int main(void) { printf("result %d\n", t_main()); return 0; }
