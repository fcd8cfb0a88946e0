/*
 * Streams and their buffers.
 *
 * The C library's own functions lose what they should keep: a last line without a newline (fgets), what was read from a pipe and not yet
 * taken when somebody asks for its place, what was written when the buffer is changed. They take an error for the end, and forget one of
 * writing. Here instead:
 *  - input is dropped only where the descriptor is set back to it; a character that was put back counts;
 *  - output is dropped only with an error, which ferror tells until clearerr;
 *  - the end is told until clearerr, ungetc or a seek.
 * A buffer has one direction at a time. Where the descriptor is, the descriptor's server knows. A stream begins with a small buffer in
 * itself, and gets a page once it has moved so much: a page can be lent.
 */
#include "stream.h"

#include <limits.h>
#include <malloc.h>
#include <string.h>

static struct __file_bufio *locked(FILE *file) {
    struct stream *stream = (struct stream *)file;
    __retarget_lock_acquire(&stream->lock);
    return &stream->bufio;
}

static void unlock(FILE *file) { __retarget_lock_release(&((struct stream *)file)->lock); }

static int failed(struct __file_bufio *bufio) {
    bufio->xfile.cfile.file.flags |= __SERR;
    if (fd_of(bufio) == 1 || fd_of(bufio) == 2)
        __lost[fd_of(bufio)] = errno;
    return _FDEV_ERR;
}

/* Nothing is left to be written, whatever happens. */
static int write_out(struct __file_bufio *bufio) {
    int done = 0, length = bufio->len;
    bufio->len = 0;
    while (done < length) {
        ssize_t written = write(fd_of(bufio), bufio->buf + done, (size_t)(length - done));
        if (written <= 0) {
            errno = written < 0 ? errno : EIO;
            return failed(bufio);
        }
        done += (int)written;
    }
    return 0;
}

/* The buffer is empty, and was full: a larger one takes its place, if there is memory. */
static void grow(struct __file_bufio *bufio) {
    struct stream *stream = (struct stream *)bufio;
    int error = errno;
    char *page = NULL;
    if (bufio->buf == stream->buffer && bufio->size == sizeof stream->buffer)
        page = memalign(PAGE_BYTES, PAGE_BYTES);
    if (page != NULL) {
        bufio->buf = page;
        bufio->size = PAGE_BYTES;
        bufio->bflags |= __BALL;
    }
    errno = error;
}

/* From reading to writing or back. */
static int turn(struct __file_bufio *bufio, uint8_t direction) {
    if (bufio->dir == direction)
        return 0;
    if (bufio->dir == __SWR && write_out(bufio) < 0)
        return _FDEV_ERR;
    if (bufio->dir == __SRD && bufio->off < bufio->len && lseek(fd_of(bufio), bufio->off - bufio->len, SEEK_CUR) < 0)
        return failed(bufio);
    bufio->len = bufio->off = 0;
    bufio->dir = direction;
    return 0;
}

int __stream_put(char c, FILE *file) {
    struct __file_bufio *bufio = locked(file);
    int result = turn(bufio, __SWR) < 0 ? _FDEV_ERR : (unsigned char)c;
    if (result >= 0) {
        bufio->buf[bufio->len++] = c;
        int full = bufio->len >= bufio->size;
        if ((full || (c == '\n' && bufio->bflags & __BLBF)) && write_out(bufio) < 0)
            result = _FDEV_ERR;
        if (full)
            grow(bufio);
    }
    unlock(file);
    return result;
}

/* What is written goes into the buffer. */
static int is_written(FILE *file, struct __file_bufio *bufio) {
    return (file->flags & (__SBUF | __SWR)) == (__SBUF | __SWR) && bufio->dir == __SWR;
}

/* Puts of so many bytes those into the buffer that leave room there, and end no line that must go out: how many. As many as the buffer has
   go out at once. -1: they have not. */
ssize_t __stream_fill(FILE *file, const char *from, size_t size) {
    struct __file_bufio *bufio = (struct __file_bufio *)file;
    if ((file->flags & (__SBUF | __SWR)) != (__SBUF | __SWR))
        return 0;
    if (turn(bufio, __SWR) < 0)
        return failed(bufio);
    if (bufio->len == 0 && size >= (size_t)bufio->size && bufio->size > 1 && !(bufio->bflags & __BLBF)) {
        ssize_t written = write(fd_of(bufio), from, size);
        if (written == 0)
            errno = EIO;
        return written > 0 ? written : failed(bufio);
    }
    size_t some = (size_t)(bufio->size - 1 - bufio->len);
    some = some < size ? some : size;
    const char *line = bufio->bflags & __BLBF ? memchr(from, '\n', some) : NULL;
    some = line == NULL ? some : (size_t)(line - from);
    memcpy(bufio->buf + bufio->len, from, some);
    bufio->len += (int)some;
    return (ssize_t)some;
}

/* The next character of the input, of which some is read if there is none. */
static int next(struct __file_bufio *bufio) {
    if (bufio->xfile.cfile.file.flags & __SEOF)
        return _FDEV_EOF;
    if (turn(bufio, __SRD) < 0)
        return _FDEV_ERR;
    if (bufio->off >= bufio->len) {
        if (bufio->len == bufio->size)
            grow(bufio);
        ssize_t got = read(fd_of(bufio), bufio->buf, (size_t)bufio->size);
        bufio->off = 0;
        bufio->len = got < 0 ? 0 : (int)got;
        if (got <= 0)
            return got < 0 ? _FDEV_ERR : _FDEV_EOF;
    }
    return (unsigned char)bufio->buf[bufio->off++];
}

int __stream_get(FILE *file) {
    struct __file_bufio *bufio = &((struct stream *)file)->bufio;
    if (file == stdin && bufio->off >= bufio->len)
        fflush(stdout); /* the question before the answer */
    locked(file);
    int result = next(bufio);
    unlock(file);
    return result;
}

/* The next bytes of the input are those in the buffer. */
static int is_read(FILE *file, struct __file_bufio *bufio) {
    return (file->flags & (__SBUF | __SRD | __SEOF)) == (__SBUF | __SRD) && file->unget == 0 && bufio->dir == __SRD;
}

/* Takes so many bytes out of the buffer, or as many as there are, up to the first that is `last`: how many. As many as the buffer has room
   for come without it. */
size_t __stream_drain(FILE *file, char *to, size_t size, int last) {
    struct __file_bufio *bufio = (struct __file_bufio *)file;
    if (file->flags & __SBUF && bufio->dir == 0 && !(file->flags & __SEOF))
        bufio->dir = __SRD; /* nothing has been done with it */
    if (!is_read(file, bufio))
        return 0;
    if (bufio->off >= bufio->len && size >= (size_t)bufio->size && bufio->size > 1 && last == EOF) {
        if (file == stdin)
            fflush(stdout);
        ssize_t got = read(fd_of(bufio), to, size);
        if (got <= 0)
            file->flags |= got == 0 ? __SEOF : __SERR;
        return got > 0 ? (size_t)got : 0;
    }
    const char *from = bufio->buf + bufio->off;
    size_t some = (size_t)(bufio->len - bufio->off);
    some = some < size ? some : size;
    const char *end = last == EOF ? NULL : memchr(from, last, some);
    some = end == NULL ? some : (size_t)(end - from) + 1;
    memcpy(to, from, some);
    bufio->off += (int)some;
    return some;
}

/* What is in the buffer is there at once; all else goes the long way. */
int getc_unlocked(FILE *file) {
    struct __file_bufio *bufio = (struct __file_bufio *)file;
    if (is_read(file, bufio) && bufio->off < bufio->len)
        return (unsigned char)bufio->buf[bufio->off++];
    if (!(file->flags & __SRD)) {
        file->flags |= __SERR;
        return EOF;
    }
    int back = file->unget;
    file->unget = 0;
    int got = back != 0 ? back - 1 : file->get(file);
    if (got < 0)
        file->flags |= got == _FDEV_ERR ? __SERR : __SEOF;
    return got < 0 ? EOF : (unsigned char)got;
}

int putc_unlocked(int c, FILE *file) {
    struct __file_bufio *bufio = (struct __file_bufio *)file;
    int room = is_written(file, bufio) && bufio->len + 1 < bufio->size;
    if (room && !(c == '\n' && bufio->bflags & __BLBF)) {
        bufio->buf[bufio->len++] = (char)c;
        return (unsigned char)c;
    }
    if (!(file->flags & __SWR))
        return EOF;
    if (file->put((char)c, file) >= 0)
        return (unsigned char)c;
    file->flags |= __SERR;
    return EOF;
}

int getc(FILE *file) { return __alone ? getc_unlocked(file) : WHOLE(int, file, getc_unlocked(file)); }
int(putc)(int c, FILE *file) { return __alone ? putc_unlocked(c, file) : WHOLE(int, file, putc_unlocked(c, file)); }
int fgetc(FILE *file) __attribute__((alias("getc")));
int fputc(int c, FILE *file) __attribute__((alias("putc")));

int __stream_flush(FILE *file) {
    struct __file_bufio *bufio = locked(file);
    int result = bufio->dir == __SWR ? write_out(bufio) : 0;
    unlock(file);
    return result;
}

/* Where the program is in the file; -1 and errno where there are no places. */
static off_t place(struct __file_bufio *bufio) {
    if (bufio->dir == __SWR && write_out(bufio) < 0)
        return -1;
    off_t at = lseek(fd_of(bufio), 0, SEEK_CUR);
    if (at < 0 || bufio->dir != __SRD)
        return at;
    at -= bufio->len - bufio->off + (bufio->xfile.cfile.file.unget != 0);
    return at < 0 ? 0 : at;
}

off_t __stream_seek(FILE *file, off_t offset, int whence) {
    struct __file_bufio *bufio = locked(file);
    off_t at = place(bufio);
    if (at >= 0 && whence == SEEK_CUR && __builtin_add_overflow(at, offset, &offset)) {
        errno = EOVERFLOW;
        at = -1;
    }
    if (at >= 0)
        at = lseek(fd_of(bufio), offset, whence == SEEK_CUR ? SEEK_SET : whence);
    if (at >= 0)
        bufio->len = bufio->off = bufio->dir = 0;
    unlock(file);
    return at;
}

/* Of a stream that is no file's: its own way to say it. */
static off_t elsewhere(FILE *file) {
    struct __file_ext *other = (struct __file_ext *)file;
    if (file->flags & __SEXT && other->seek != NULL)
        return other->seek(file, 0, SEEK_CUR);
    errno = ESPIPE;
    return -1;
}

off_t ftello(FILE *file) {
    if (!(file->flags & __SBUF))
        return elsewhere(file);
    off_t at = place(locked(file));
    unlock(file);
    return at;
}

long ftell(FILE *file) { return ftello(file); }

/* Input that is in the old buffer stays there, and the buffer with it. */
int __stream_setvbuf(FILE *file, char *buffer, int mode, size_t size) {
    struct stream *stream = (struct stream *)file;
    if ((mode != _IOFBF && mode != _IOLBF && mode != _IONBF) || size > INT_MAX) {
        errno = EINVAL;
        return -1;
    }
    struct __file_bufio *bufio = locked(file);
    int result = bufio->dir == __SWR ? write_out(bufio) : 0, own = __BALL;
    if (bufio->off >= bufio->len) {
        if (mode != _IONBF && buffer != NULL && size > 0)
            own = 0;
        else if (mode == _IONBF || size <= sizeof stream->buffer || (buffer = malloc(size)) == NULL)
            buffer = stream->buffer, size = mode == _IONBF ? 1 : sizeof stream->buffer, own = 0;
        if (bufio->bflags & __BALL)
            free(bufio->buf);
        bufio->buf = buffer;
        bufio->size = (int)size;
        bufio->bflags = (uint8_t)own;
    }
    bufio->bflags = (uint8_t)((bufio->bflags & ~__BLBF) | (mode == _IOLBF ? __BLBF : 0));
    unlock(file);
    return result < 0 ? -1 : 0;
}
