/* A module of functions that use the C library: no `_start` has set it up. The number of those that say what they should. */
#include <pebble_plugin.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

PBL_EXPORT(right, "sm")
unsigned long right(void) {
    char text[64], *made = NULL;
    size_t length = 0;
    wchar_t wide[8];
    time_t day = 86400;
    unsigned long count = 0;

    char *block = malloc(100);
    char *copy = strdup("copied");
    count += block && copy && (block = realloc(block, 100000)) && strcmp(copy, "copied") == 0;
    free(block);
    free(copy);
    count += strcmp(strerror(ENOENT), "No such file or directory") == 0;
    count += mbtowc(wide, "\303\251", 2) == 1 || wide[0] == 0xe9; /* in the C locale a byte is a character */
    count += strftime(text, sizeof text, "%A %d %B %Y", gmtime(&day)) == 22;
    count += swprintf(wide, 8, L"%d", 5) == 1 && wide[0] == L'5';
    FILE *file = open_memstream(&made, &length);
    count += file && fprintf(file, "%s %g", "hello", 1.5) == 9 && fclose(file) == 0 && length == 9;
    free(made);
    return count;
}
