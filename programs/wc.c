/* wc [-lwc] [FILE...]: counts lines, words and bytes; columns as in coreutils. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counts {
    const char *name; /* NULL for standard input without a name */
    unsigned long number[3];
    int failed;
};

enum { LINES, WORDS, BYTES };
static const char letters[] = "lwc";
static int wanted[3];

static void count(struct counts *c) {
    static char buffer[4096];
    int standard = c->name == NULL || strcmp(c->name, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(c->name, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : 0;
    int in_word = 0;
    while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0) {
        c->number[BYTES] += (unsigned long)got;
        for (ssize_t i = 0; i < got; i++) {
            unsigned char byte = (unsigned char)buffer[i];
            c->number[LINES] += byte == '\n';
            if (isspace(byte))
                in_word = 0;
            else if (!in_word)
                c->number[WORDS] += (unsigned)(in_word = 1);
        }
    }
    if (got < 0) {
        fputs("wc: ", stderr);
        perror(standard ? "standard input" : c->name);
        c->failed = 1;
    }
    if (fd >= 0 && !standard)
        close(fd);
}

static void print(const struct counts *c, int width) {
    const char *gap = "";
    for (int i = 0; i < 3; i++)
        if (wanted[i]) {
            printf("%s%*lu", gap, width, c->number[i]);
            gap = " ";
        }
    if (c->name != NULL)
        printf(" %s", c->name);
    putchar('\n');
}

static int usage(void) {
    fputs("usage: wc [-lwc] [FILE...]\n", stderr);
    return 2;
}

int main(int argc, char **argv) {
    int first = 1;
    for (; first < argc && argv[first][0] == '-' && argv[first][1] != 0; first++)
        for (const char *letter = argv[first] + 1; *letter; letter++) {
            const char *option = strchr(letters, *letter);
            if (option == NULL)
                return usage();
            wanted[option - letters] = 1;
        }
    if (!wanted[LINES] && !wanted[WORDS] && !wanted[BYTES])
        wanted[LINES] = wanted[WORDS] = wanted[BYTES] = 1;

    int files = argc - first, failed = 0;
    struct counts total = {.name = "total"};
    struct counts *all = calloc((size_t)files + 1, sizeof *all);
    if (all == NULL) {
        perror("wc");
        return 1;
    }
    for (int i = 0; i < (files ? files : 1); i++) {
        all[i].name = files ? argv[first + i] : NULL;
        count(&all[i]);
        failed |= all[i].failed;
        for (int n = 0; n < 3; n++)
            total.number[n] += all[i].number[n];
    }
    /* As wide as the largest number, which is the bytes; a stream has no size to tell beforehand. */
    int width;
    if (wanted[LINES] + wanted[WORDS] + wanted[BYTES] == 1 && files < 2)
        width = 1;
    else if (files == 0)
        width = 7;
    else
        width = snprintf(NULL, 0, "%lu", total.number[BYTES]);
    for (int i = 0; i < (files ? files : 1); i++)
        if (!all[i].failed)
            print(&all[i], width);
    if (files > 1)
        print(&total, width);
    return failed;
}
