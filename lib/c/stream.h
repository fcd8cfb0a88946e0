/* What the two halves of the streams share: stdio.c opens and closes them, buffer.c is between them and their descriptors. */
#ifndef STREAM_H
#define STREAM_H

#include "internal.h"

#include <stdio-bufio.h>
#include <stdio.h>
#include <sys/lock.h>

/* The header's are the locked ones. */
#undef getc_unlocked
#undef putc_unlocked

struct stream {
    struct __file_bufio bufio; /* its `pos` is not used */
    struct __lock lock;
    struct stream *next;
    char temporary[L_tmpnam]; /* the name of a file that goes when the stream is closed; "": there is none */
    char buffer[256];
};

/* The descriptor. */
static inline int fd_of(const struct __file_bufio *bufio) { return (int)(long)bufio->ptr; }
static inline void set_fd(struct __file_bufio *bufio, int fd) { bufio->ptr = (void *)(long)fd; }

/* One call is one piece: nobody else's characters come in between. */
#define WHOLE(type, file, call)                                                                                  \
    __extension__({                                                                                              \
        flockfile(file);                                                                                         \
        type result_ = (call);                                                                                   \
        funlockfile(file);                                                                                       \
        result_;                                                                                                 \
    })

int __stream_put(char c, FILE *file);
int __stream_get(FILE *file);
int __stream_flush(FILE *file);
/* Of many bytes, those that are in the buffer, or find room there, before anything must be read or written: how many. The stream is
   locked. */
size_t __stream_drain(FILE *file, char *to, size_t size, int last);
ssize_t __stream_fill(FILE *file, const char *from, size_t size);
off_t __stream_seek(FILE *file, off_t offset, int whence);
int __stream_setvbuf(FILE *file, char *buffer, int mode, size_t size);

#endif
