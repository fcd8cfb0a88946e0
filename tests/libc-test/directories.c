/* Directories as programs go through them. */
#include "check.h"
#include <dirent.h>

/* How often the name is there, and of which kind. */
static int find(DIR *directory, const char *name, int kind) {
    int found = 0;
    rewinddir(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        CHECK(strchr(entry->d_name, '/') == NULL && entry->d_name[0] != 0 && entry->d_ino != 0);
        found += strcmp(entry->d_name, name) == 0 && entry->d_type == kind;
    }
    return found;
}

void test_directories(void) {
    DIR *root = opendir("/");
    CHECK(root != NULL && find(root, "bin", DT_DIR) == 1 && find(root, "ram", DT_DIR) == 1 && find(root, "none", DT_REG) == 0);
    CHECK(closedir(root) == 0);
    DIR *programs = opendir("/bin");
    CHECK(programs != NULL && find(programs, "libc-test", DT_REG) == 1);
    closedir(programs);
    errno = 0;
    CHECK(opendir("/bin/cat") == NULL && errno == ENOTDIR);
    CHECK(opendir("/none") == NULL && errno == ENOENT);
    CHECK(opendir("") == NULL && errno == ENOENT);

    const char *names[] = {"/ram/d1", "/ram/d2", "/ram/d3"};
    for (int i = 0; i < 2; i++)
        put(names[i], O_WRONLY | O_CREAT, "x");
    DIR *ram = opendir("/ram");
    CHECK(ram != NULL && find(ram, "d1", DT_REG) == 1 && find(ram, "d2", DT_REG) == 1 && find(ram, "d3", DT_REG) == 0);
    /* What comes and goes is seen after the next rewinding. */
    rewinddir(ram);
    put(names[2], O_WRONLY | O_CREAT, "x");
    unlink(names[0]);
    SAME(readdir(ram)->d_name, "d1");
    long second = telldir(ram);
    SAME(readdir(ram)->d_name, "d2");
    errno = 0;
    CHECK(readdir(ram) == NULL && readdir(ram) == NULL && errno == 0);
    seekdir(ram, second);
    SAME(readdir(ram)->d_name, "d2");
    CHECK(find(ram, "d1", DT_REG) == 0 && find(ram, "d3", DT_REG) == 1);
    CHECK(dirfd(ram) > 2 && closedir(ram) == 0);
    unlink(names[1]);
    unlink(names[2]);
    /* Nothing stays open. */
    for (int i = 0; i < 200; i++) {
        DIR *again = opendir("/etc");
        CHECK(again != NULL && closedir(again) == 0);
    }
    FAILS(fdopendir(-1) == NULL ? -1 : 0, EBADF);
}
