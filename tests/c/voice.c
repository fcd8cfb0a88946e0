/* voice LETTER: a hundred lines of that letter, by turns to standard output and standard error. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2 || strlen(argv[1]) != 1) {
        fputs("usage: voice LETTER\n", stderr);
        return 2;
    }
    char line[100] = {0};
    memset(line, *argv[1], sizeof line - 1);
    for (int i = 0; i < 100; i++)
        fprintf(i % 2 ? stderr : stdout, "%s\n", line);
    return 0;
}
