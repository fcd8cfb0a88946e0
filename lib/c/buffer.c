/*
 * Streams and their buffers.
 *
 * The C library's own functions lose what they should keep: a last line without a newline (fgets), what was read from a pipe and not yet
 * taken when somebody asks for its place, what was written when the buffer is changed. They take an error for the end, and forget one of
 * writing. Here instead:
 *  - input is dropped only where the descriptor is set back to it; a character that was put back counts;
 *  - output is dropped only with an error, which ferror tells until clearerr;
 *  - the end is told until clearerr, ungetc or a seek.
 * A buffer has one direction at a time. Where the descriptor is, the descriptor's server knows.
 */
#include "stream.h"

#include <limits.h>

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
        if ((bufio->len >= bufio->size || (c == '\n' && bufio->bflags & __BLBF)) && write_out(bufio) < 0)
            result = _FDEV_ERR;
    }
    unlock(file);
    return result;
}

/* The next character of the input, of which some is read if there is none. */
static int next(struct __file_bufio *bufio) {
    if (bufio->xfile.cfile.file.flags & __SEOF)
        return _FDEV_EOF;
    if (turn(bufio, __SRD) < 0)
        return _FDEV_ERR;
    if (bufio->off >= bufio->len) {
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
