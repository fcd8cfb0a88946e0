/*
 * Functions of streams that take or give more than a character, each as one piece; and the locks by which programs make several calls one. A
 * stream that is no descriptor's (of a text, or of functions of the program's own) has no lock.
 */
#include "stream.h"

#include <string.h>

static struct __lock *lock_of(FILE *file) { return file->flags & __SBUF ? &((struct stream *)file)->lock : NULL; }

void flockfile(FILE *file) { __retarget_lock_acquire(lock_of(file)); }
int ftrylockfile(FILE *file) { return !__retarget_lock_try_acquire(lock_of(file)); }
void funlockfile(FILE *file) { __retarget_lock_release(lock_of(file)); }

static size_t put_all(const char *bytes, size_t size, FILE *file) {
    for (size_t done = 0;; done++) {
        ssize_t some = __stream_fill(file, bytes + done, size - done);
        done += some > 0 ? (size_t)some : 0;
        if (some < 0 || done == size || putc_unlocked(bytes[done], file) == EOF)
            return done;
    }
}

static size_t get_all(char *bytes, size_t size, FILE *file) {
    for (size_t done = 0;; done++) {
        done += __stream_drain(file, bytes + done, size - done, EOF);
        int c = done == size ? EOF : getc_unlocked(file);
        if (c == EOF)
            return done;
        bytes[done] = (char)c;
    }
}

/* Of things that have no size, or of more than there is memory for, there are none. */
static int count_of(size_t size, size_t count, size_t *bytes) {
    return size != 0 && !__builtin_mul_overflow(size, count, bytes);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    size_t bytes;
    return count_of(size, count, &bytes) ? WHOLE(size_t, file, put_all(from, bytes, file)) / size : 0;
}

size_t fread(void *to, size_t size, size_t count, FILE *file) {
    size_t bytes;
    return count_of(size, count, &bytes) ? WHOLE(size_t, file, get_all(to, bytes, file)) / size : 0;
}

int fputs(const char *text, FILE *file) {
    size_t length = strlen(text);
    return WHOLE(size_t, file, put_all(text, length, file)) == length ? 0 : EOF;
}

int puts(const char *text) { return WHOLE(int, stdout, fputs(text, stdout) == EOF ? EOF : putchar('\n')) == EOF ? EOF : 0; }

/* A line, or what there is of it: nothing only at the end, or if the stream fails. */
static char *get_line(char *line, int size, FILE *file) {
    int length = 0, c = 0;
    while (length < size - 1 && c != '\n' && c != EOF) {
        size_t some = __stream_drain(file, line + length, (size_t)(size - 1 - length), '\n');
        length += (int)some;
        c = some > 0 ? (unsigned char)line[length - 1] : getc_unlocked(file);
        if (some == 0 && c != EOF)
            line[length++] = (char)c;
    }
    if (c == EOF && (length == 0 || !feof(file)))
        return NULL;
    line[length] = 0;
    return line;
}

char *fgets(char *line, int size, FILE *file) { return size <= 0 ? NULL : WHOLE(char *, file, get_line(line, size, file)); }

void perror(const char *what) {
    const char *why = strerror(errno);
    if (what != NULL && *what != 0)
        fprintf(stderr, "%s: %s\n", what, why);
    else
        fprintf(stderr, "%s\n", why);
}
