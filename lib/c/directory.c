/*
 * Directories: opendir and its kin.
 *
 * A directory reads as the names in it, one a line, those of directories with "/" behind. They are read at once, and
 * told one by one, so a file that comes or goes meanwhile neither tears a name nor hides another: what is told is what there was when
 * the directory was opened, or rewound. "." and ".." are not among them.
 */
#include "internal.h"

#include <dirent.h>
#include <sys/stat.h>

struct __directory {
    int fd;
    size_t size, next; /* of the text, and where in it the next name begins */
    long number;
    char *text;
    struct dirent entry;
};

enum { TRIES = 16 };

/* All that there is. The file server gives at most a page a call; whoever finds that the directory has changed between two begins again. */
static char *read_names(int fd, size_t *size) {
    for (int tries = 0; tries < TRIES; tries++) {
        struct stat about;
        if (fstat(fd, &about) < 0 || lseek(fd, 0, SEEK_SET) < 0)
            return NULL;
        size_t room = (size_t)about.st_size;
        char *text = malloc(room + 1), *again = malloc(room + 1);
        ssize_t got = -1, same = -1;
        if (text != NULL && again != NULL && (got = read(fd, text, room + 1)) >= 0 && lseek(fd, 0, SEEK_SET) == 0)
            same = read(fd, again, room + 1);
        int failed = same < 0, error = errno;
        int whole = !failed && got == same && got == about.st_size && memcmp(text, again, (size_t)got) == 0;
        free(again);
        *size = (size_t)got;
        if (whole)
            return text;
        free(text);
        if (failed) {
            errno = error;
            return NULL;
        }
    }
    errno = EAGAIN;
    return NULL;
}

DIR *fdopendir(int fd) {
    struct stat about;
    if (fstat(fd, &about) < 0)
        return NULL;
    if (!S_ISDIR(about.st_mode)) {
        errno = ENOTDIR;
        return NULL;
    }
    DIR *directory = calloc(1, sizeof *directory);
    if (directory == NULL)
        return NULL;
    directory->fd = fd;
    if ((directory->text = read_names(fd, &directory->size)) != NULL)
        return directory;
    int error = errno;
    free(directory);
    errno = error;
    return NULL;
}

DIR *opendir(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return directory;
}

/* A null pointer at the end, and errno as it was. */
struct dirent *readdir(DIR *directory) {
    const char *name = directory->text + directory->next;
    size_t rest = directory->size - directory->next;
    if (rest == 0)
        return NULL;
    const char *end = memchr(name, '\n', rest);
    size_t length = end == NULL ? rest : (size_t)(end - name);
    directory->next += length + (end != NULL);
    int folder = length > 1 && name[length - 1] == '/';
    struct dirent *entry = &directory->entry;
    *entry = (struct dirent){.d_ino = (ino_t)++directory->number, .d_type = folder ? DT_DIR : DT_REG};
    length -= (size_t)folder;
    memcpy(entry->d_name, name, length < sizeof entry->d_name ? length : sizeof entry->d_name - 1);
    return entry;
}

/* What cannot be read anew is told as it was. */
void rewinddir(DIR *directory) {
    size_t size;
    int error = errno;
    char *text = read_names(directory->fd, &size);
    if (text != NULL) {
        free(directory->text);
        directory->text = text;
        directory->size = size;
    }
    directory->next = 0;
    directory->number = 0;
    errno = error;
}

int closedir(DIR *directory) {
    int result = close(directory->fd);
    free(directory->text);
    free(directory);
    return result;
}

int dirfd(DIR *directory) { return directory->fd; }

/* A place is that of a name in the text, with the number of the names before it. */
long telldir(DIR *directory) { return (long)directory->next | directory->number << 32; }

void seekdir(DIR *directory, long place) {
    size_t next = (size_t)(place & 0xffffffff);
    if (next > directory->size)
        return;
    directory->next = next;
    directory->number = place >> 32;
}
