/* Specifications in the words of a call, and what is wrong with one (abi/src/specification.rs). */
#include "internal.h"

#include <stdio.h>
#include <string.h>

static const char *const texts[] = {SPECIFICATION_TEXTS};

int __specification_errno(unsigned long status) {
    return (int)(status >> 40 & 0xff) == SPECIFICATION_NO_TEMPLATE ? ENOPROTOOPT : EINVAL;
}

/* What this library finds itself is as if the portal manager had. */
static int wrong(int reason, size_t at, char letter) {
    unsigned long what = at << 32 | (unsigned long)reason << 40 | (unsigned long)(unsigned char)letter << 48;
    __failed(PORTAL_SPECIFICATION | (unsigned long)get_asid() << 16 | what);
    errno = EINVAL;
    return 0;
}

int __pack_specification(const char *spec, unsigned long words[2]) {
    size_t length = strcspn(spec, ">");
    const char *results = spec + length + 1;
    words[0] = words[1] = 0;
    if (length > 11)
        return wrong(SPECIFICATION_TOO_LONG, 11, 0);
    memcpy(words, spec, length);
    words[1] <<= 8;
    if (spec[length] == 0)
        return 1;
    if (results[0] < '1' || results[0] > '0' + MAX_RESULTS)
        return wrong(SPECIFICATION_BAD_RESULTS, length + 1, 0);
    if (results[1] != 0)
        return wrong(SPECIFICATION_TRAILING_TEXT, length + 2, 0);
    words[1] |= (unsigned long)(results[0] - '0');
    return 1;
}

void __print_specification_error(const char *what, unsigned long status) {
    size_t reason = status >> 40 & 0xff;
    char letter[] = {'\'', (char)(status >> 48), '\'', ' ', 0};
    fprintf(stderr, "%s: specification of domain %d, column %d: %s%s\n", what, portal_status_domain(status),
            portal_status_column(status), letter[1] == 0 ? "" : letter,
            reason < sizeof texts / sizeof *texts ? texts[reason] : "refused");
}
