/* cat [FILE...]: copies files, or standard input ("-"), to standard output. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether all was written. */
static int put(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, count);
        if (written <= 0)
            return 0;
        bytes += written;
        count -= (size_t)written;
    }
    return 1;
}

/* 0; 1 if the input failed, 2 if the output did. */
static int copy(int from) {
    static char buffer[4096];
    size_t kept = 0;
    ssize_t count;
    while ((count = read(from, buffer + kept, sizeof buffer - kept)) > 0) {
        size_t all = kept + (size_t)count, lines = all;
        /* When there is more, as a full buffer says, the last line waits for its end: two cats do not tear each other's lines. */
        while (all == sizeof buffer && lines > 0 && buffer[lines - 1] != '\n')
            lines--;
        if (lines == 0)
            lines = all;
        if (!put(buffer, lines))
            return 2;
        kept = all - lines;
        memmove(buffer, buffer + lines, kept);
    }
    if (!put(buffer, kept))
        return 2;
    return count < 0;
}

static int cat(const char *path) {
    int standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY);
    int failed = fd < 0 ? 1 : copy(fd);
    if (failed) {
        fputs("cat: ", stderr);
        perror(failed == 2 ? "write" : path);
    }
    if (fd >= 0 && !standard)
        close(fd);
    return failed;
}

int main(int argc, char **argv) {
    int failed = argc < 2 ? cat("-") : 0;
    for (int i = 1; i < argc && failed != 2; i++) {
        int this = cat(argv[i]);
        if (this > failed)
            failed = this;
    }
    return failed != 0;
}
