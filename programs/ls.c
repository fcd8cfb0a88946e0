/*
 * ls [PATH...]: lists directories, which read as their entries' names, a line each. A path that ends in "/" opens
 * directories alone; that tells them from files, of which ls says the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pebble.h>
#include <stdio.h>
#include <unistd.h>

static int fail(const char *path) {
    fputs("ls: ", stderr);
    perror(path);
    return 1;
}

static int list(const char *path) {
    char buffer[512];
    ssize_t count;
    snprintf(buffer, sizeof buffer, "%s/", path);
    int fd = open(buffer, O_RDONLY);
    if (fd < 0 && errno == ENOTDIR && (fd = open(path, O_RDONLY)) >= 0) {
        puts(path);
        close(fd);
        return 0;
    }
    if (fd < 0)
        return fail(path);
    /* One call each: an error behind the first bytes would otherwise be seen by nobody. */
    while ((count = read(fd, buffer, IO_BYTES)) > 0)
        if (fwrite(buffer, 1, (size_t)count, stdout) != (size_t)count || fflush(stdout) != 0)
            break;
    int failed = count == 0 ? 0 : fail(count < 0 ? path : "standard output");
    close(fd);
    return failed;
}

int main(int argc, char **argv) {
    int failed = argc < 2 ? list("") : 0;
    for (int i = 1; i < argc; i++) {
        if (argc > 2)
            printf("%s%s:\n", i > 1 ? "\n" : "", argv[i]);
        failed |= list(argv[i]);
    }
    return failed;
}
