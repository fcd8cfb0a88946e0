/* Letters of the C locale, the only one there is, without a table. */
#include <ctype.h>

#undef tolower
#undef toupper

int tolower(int c) { return (unsigned)c - 'A' < 26 ? c + ('a' - 'A') : c; }
int toupper(int c) { return (unsigned)c - 'a' < 26 ? c - ('a' - 'A') : c; }
