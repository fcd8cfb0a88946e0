/* echo [-n] [WORD...]: prints its arguments. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int first = argc > 1 && strcmp(argv[1], "-n") == 0 ? 2 : 1;
    for (int i = first; i < argc; i++) {
        if (i > first)
            putchar(' ');
        fputs(argv[i], stdout);
    }
    if (first == 1)
        putchar('\n');
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("echo");
        return 1;
    }
    return 0;
}
