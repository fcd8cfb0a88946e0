/*
 * Streams over descriptors: stdin, stdout and stderr, and those of fopen, fdopen and freopen. Linked only into programs that use
 * them.
 *
 * The C library's own fclose gives a stream to free, whoever made it, and its exit flushes nothing. Here a stream belongs to this
 * file for good. Invariants:
 *  - no stream is ever given to malloc's free: a closed one waits in the list for the next fopen, so a second fclose, or whatever else
 *    is done to it, is EBADF;
 *  - the list has every stream, so exit and fflush(NULL) write out all that is open, and nothing that is closed.
 * Output is line-buffered on the console and to stderr, else fully buffered.
 */
#include "stream.h"

#include <string.h>

#define NO_FILE (-1) /* descriptor of a closed stream */

static int stream_close(FILE *file);

/* The library's own initialiser, but for the functions, and the lock that it leaves out. */
#define STREAM(self, n, direction, flags, following)                                                             \
    {                                                                                                            \
        .bufio = {.xfile = FDEV_SETUP_EXT(__stream_put, __stream_get, __stream_flush, stream_close,              \
                                          __stream_seek, __stream_setvbuf, (direction) | __SBUF),                \
                  .ptr = (void *)(long)(n), .bflags = flags, .buf = self.buffer, .size = sizeof self.buffer,                      \
                  .lock = &self.lock},                                                                           \
        .next = following,                                                                                       \
    }

static struct stream err = STREAM(err, 2, _FDEV_SETUP_WRITE, __BLBF, NULL);
static struct stream out = STREAM(out, 1, _FDEV_SETUP_WRITE, __BLBF, &err);
static struct stream in = STREAM(in, 0, _FDEV_SETUP_READ, 0, &out);

FILE *const stdin = &in.bufio.xfile.cfile.file;
FILE *const stdout = &out.bufio.xfile.cfile.file;
FILE *const stderr = &err.bufio.xfile.cfile.file;

static struct stream *all = &in; /* grows at its head */
static struct __lock list;

static struct stream *own(FILE *file) { return (struct stream *)file; }

/* A stream's direction, and the flags for open; 0 and EINVAL if there is no such mode. The library's own does not know x. */
static int direction_of(const char *mode, int *flags) {
    int direction = *mode == 'r' ? __SRD : *mode == 'w' || *mode == 'a' ? __SWR : 0;
    if (direction == 0)
        errno = EINVAL;
    *flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*mode == 'w' ? O_TRUNC : O_APPEND);
    if (direction != 0 && strchr(mode, '+') != NULL) {
        direction = __SRD | __SWR;
        *flags = (*flags & ~O_ACCMODE) | O_RDWR;
    }
    if (direction & __SWR && strchr(mode, 'x') != NULL)
        *flags |= O_EXCL;
    return direction;
}

/* The stream is the descriptor's from now on. Its lock is held, or nobody else knows it. */
static void attach(struct stream *stream, int fd, int direction) {
    struct __file_bufio *bufio = &stream->bufio;
    int error = errno;
    if (!(bufio->bflags & __BALL))
        bufio->buf = stream->buffer, bufio->size = sizeof stream->buffer;
    bufio->bflags = (uint8_t)((bufio->bflags & __BALL) | (direction & __SWR && isatty(fd) ? __BLBF : 0));
    set_fd(bufio, fd);
    bufio->dir = 0;
    bufio->len = bufio->off = 0;
    FILE *file = &bufio->xfile.cfile.file;
    file->unget = 0;
    file->flags = (uint8_t)((file->flags & ~(__SRD | __SWR | __SERR | __SEOF)) | direction);
    errno = error; /* isatty's answer is none of the caller's business */
}

static void forget(struct stream *stream) {
    if (stream->temporary[0] != 0)
        unlink(stream->temporary);
    stream->temporary[0] = 0;
}

/* Writes out, closes the descriptor, and leaves the stream closed, whatever fails. */
static int detach(struct stream *stream) {
    struct __file_bufio *bufio = &stream->bufio;
    int fd = fd_of(bufio);
    if (fd == NO_FILE) {
        errno = EBADF;
        return EOF;
    }
    int result = __stream_flush(&bufio->xfile.cfile.file) < 0 ? EOF : 0;
    if (bufio->bflags & __BALL)
        free(bufio->buf);
    bufio->bflags = 0;
    attach(stream, NO_FILE, 0);
    forget(stream);
    return close(fd) < 0 ? EOF : result;
}

static int stream_close(FILE *file) {
    struct stream *stream = own(file);
    __retarget_lock_acquire(&stream->lock);
    int result = detach(stream);
    __retarget_lock_release(&stream->lock);
    return result;
}

/* A stream that is nobody's: a closed one, but for the three that programs know by name, or a new one. */
static struct stream *spare(void) {
    struct stream *stream;
    for (stream = all; stream != &in; stream = stream->next)
        if (fd_of(&stream->bufio) == NO_FILE)
            return stream;
    stream = malloc(sizeof *stream);
    if (stream != NULL) {
        *stream = (struct stream)STREAM((*stream), NO_FILE, 0, 0, all);
        all = stream;
    }
    return stream;
}

FILE *fdopen(int fd, const char *mode) {
    int flags, direction = direction_of(mode, &flags);
    if (direction == 0)
        return NULL;
    __retarget_lock_acquire(&list);
    struct stream *stream = spare();
    if (stream != NULL)
        attach(stream, fd, direction);
    __retarget_lock_release(&list);
    return stream == NULL ? NULL : &stream->bufio.xfile.cfile.file;
}

/* open, for a mode. */
static int open_mode(const char *path, const char *mode) {
    int flags;
    return direction_of(mode, &flags) == 0 ? -1 : open(path, flags, 0666);
}

FILE *fopen(const char *path, const char *mode) {
    int fd = open_mode(path, mode);
    if (fd < 0)
        return NULL;
    FILE *file = fdopen(fd, mode);
    if (file == NULL)
        close(fd);
    return file;
}

/* The stream is closed in any case. Only its name can be changed, not its mode: without a path there is EBADF, as the standard allows. */
FILE *freopen(const char *path, const char *mode, FILE *file) {
    if (!(file->flags & __SBUF) || path == NULL) {
        fclose(file);
        errno = EBADF;
        return NULL;
    }
    struct stream *stream = own(file);
    __retarget_lock_acquire(&stream->lock);
    if (fd_of(&stream->bufio) != NO_FILE)
        detach(stream);
    int flags, fd = open_mode(path, mode);
    if (fd >= 0)
        attach(stream, fd, direction_of(mode, &flags));
    __retarget_lock_release(&stream->lock);
    return fd < 0 ? NULL : file;
}

/* Streams that are read are left alone: who reads may hold the lock for as long as nothing comes. */
static int flush_all(void) {
    int result = 0;
    __retarget_lock_acquire(&list);
    for (struct stream *stream = all; stream != NULL; stream = stream->next)
        if (fd_of(&stream->bufio) != NO_FILE && stream->bufio.dir == __SWR && __stream_flush(&stream->bufio.xfile.cfile.file) < 0)
            result = EOF;
    __retarget_lock_release(&list);
    return result;
}

int fflush(FILE *file) {
    if (file == NULL)
        return flush_all();
    return file->flush == NULL ? 0 : file->flush(file) < 0 ? EOF : 0;
}

__attribute__((constructor)) static void before_main(void) {
    if (!isatty(1))
        out.bufio.bflags = 0;
}

/* After all other destructors: they may print. */
__attribute__((destructor(101))) static void at_exit(void) {
    flush_all();
    /* What the program has been told of, and has forgiven, is no loss. */
    for (int n = 1; n <= 2; n++)
        if (!ferror(n == 1 ? stdout : stderr))
            __lost[n] = 0;
    for (struct stream *stream = all; stream != NULL; stream = stream->next)
        forget(stream);
}
