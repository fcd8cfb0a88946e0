/*
 * What the errors are called. The C library's own texts date from before there were limits on files and threads ("No more
 * processes", "File descriptor value too large"): they would send the reader looking in the wrong place.
 */
#include "internal.h"

#include <string.h>

static const char *const texts[] = {
    [0] = "Success",
    [EPERM] = "Operation not permitted",
    [ENOENT] = "No such file or directory",
    [ESRCH] = "No such domain or thread",
    [EINTR] = "Interrupted",
    [EIO] = "Input or output failed",
    [ENXIO] = "No such device or address",
    [E2BIG] = "Argument list too long",
    [ENOEXEC] = "Not a program",
    [EBADF] = "Not an open file or portal",
    [ECHILD] = "No such child",
    [EAGAIN] = "Limit reached, try again later",
    [ENOMEM] = "Out of memory",
    [EACCES] = "Permission denied",
    [EFAULT] = "Bad address",
    [EBUSY] = "Busy, try again",
    [EEXIST] = "File exists",
    [EXDEV] = "Not within one file system",
    [ENODEV] = "No such device",
    [ENOTDIR] = "Not a directory",
    [EISDIR] = "Is a directory",
    [EINVAL] = "Invalid argument",
    [ENFILE] = "Too many open files in the system",
    [EMFILE] = "Too many open files or portals",
    [ENOTTY] = "Not a terminal",
    [EFBIG] = "File too large",
    [ENOSPC] = "No space left",
    [ESPIPE] = "A console or pipe has no places to seek",
    [EROFS] = "Read-only file system",
    [EPIPE] = "Nobody reads the pipe, or the callee died",
    [EDOM] = "Argument outside the function's domain",
    [ERANGE] = "Result out of range",
    [EDEADLK] = "Would wait for itself",
    [EPROTO] = "Protocol error",
    [EBADMSG] = "Bad message",
    [ENOSYS] = "Not implemented",
    [ENOTEMPTY] = "Directory not empty",
    [ENAMETOOLONG] = "Name too long",
    [ELOOP] = "Too many links",
    [EOPNOTSUPP] = "Not supported",
    [ENOPROTOOPT] = "No template for a letter of the specification",
    [ETIMEDOUT] = "Time is over",
    [EALREADY] = "Under way already",
    [EILSEQ] = "Not a character of this encoding",
    [EOVERFLOW] = "Value too large for its type",
    [ECANCELED] = "Cancelled",
    /* Shares of a family of programs (abi/src/share.rs). */
    [ETIMELIMITS] = "No more time limits for this program and what it has started",
    [EINTERFACES] = "No more interfaces for this program and what it has started",
    [ESEMAPHORES] = "No more semaphores for this program and what it has started",
    [ESTACKS] = "No more stacks for this program and what it has started",
    [ECODE] = "No more portal code for this program and what it has started",
    [ETABLES] = "No more room in portal tables for this program and what it has started",
    [EPROGRAMS] = "No more programs for this program and what it has started",
    [EPIPES] = "No more pipes for this program and what it has started",
    [ETHREADS] = "No more threads for this program and what it has started",
    [EFILES] = "No more open files for this program and what it has started",
    [EHANDLERS] = "No more fault handlers for this program and what it has started",
    [ERAM] = "No more room in /ram for this program and what it has started",
    [ECAPABILITIES] = "No more capabilities for this program and what it has started",
    [ECOUNTERS] = "No more counters of calls for this program and what it has started",
};

char *_strerror_r(int error, int internal, int *result) {
    static __thread char unknown[24];
    (void)internal;
    size_t count = sizeof texts / sizeof *texts;
    const char *text = error >= 0 && (size_t)error < count ? texts[error] : NULL;
    if (text == NULL) {
        if (result != NULL)
            *result = EINVAL;
        /* Without printf: not every program that names an error has it. */
        char digits[12], *d = digits + sizeof digits;
        unsigned rest = error < 0 ? -(unsigned)error : (unsigned)error;
        for (*--d = 0; rest > 9; rest /= 10)
            *--d = (char)('0' + rest % 10);
        *--d = (char)('0' + rest);
        if (error < 0)
            *--d = '-';
        text = strcat(strcpy(unknown, "Error "), d);
    }
    return (char *)text;
}

char *strerror(int error) { return _strerror_r(error, 0, NULL); }

char *strerror_l(int error, locale_t locale) {
    (void)locale;
    return strerror(error);
}
