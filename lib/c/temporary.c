/*
 * tmpnam and tmpfile. Files are made in /ram alone, and a name has L_tmpnam characters, the last of them 0: two are left to choose.
 */
#include "stream.h"

#include <string.h>

#define DIRECTORY "/ram/"
#define CHARACTERS "0123456789abcdefghijklmnopqrstuvwxyz"
#define COUNT ((sizeof CHARACTERS - 1) * (sizeof CHARACTERS - 1))

/* One of COUNT names. */
static void spell(char name[L_tmpnam], size_t number) {
    static const char characters[] = CHARACTERS;
    size_t most = sizeof characters - 1, at = strlen(strcpy(name, DIRECTORY));
    name[at] = characters[number / most % most];
    name[at + 1] = characters[number % most];
    name[at + 2] = 0;
}

char *tmpnam(char *name) {
    static char own[L_tmpnam];
    size_t start = (size_t)hrtime();
    name = name == NULL ? own : name;
    for (size_t i = 0; i < COUNT; i++) {
        spell(name, start + i);
        if (access(name, F_OK) < 0)
            return errno == ENOENT ? name : NULL;
    }
    return NULL;
}

/* Nobody else has the file: it is made with the name, not found. */
FILE *tmpfile(void) {
    char name[L_tmpnam];
    size_t start = (size_t)hrtime();
    int fd = -1;
    for (size_t i = 0; i < COUNT && fd < 0; i++) {
        spell(name, start + i);
        fd = open(name, O_RDWR | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST)
            return NULL;
    }
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (file != NULL)
        strcpy(((struct stream *)file)->temporary, name);
    else if (fd >= 0)
        close(fd), unlink(name);
    return file;
}
