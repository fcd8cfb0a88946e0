/* cat [FILE...]: copies files, or standard input ("-"), to standard output. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 0; 1 if the input failed, 2 if the output did. */
static int copy(int from) {
    static char buffer[4096];
    ssize_t count;
    while ((count = read(from, buffer, sizeof buffer)) > 0)
        for (ssize_t done = 0; done < count;) {
            ssize_t written = write(STDOUT_FILENO, buffer + done, (size_t)(count - done));
            if (written <= 0)
                return 2;
            done += written;
        }
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
