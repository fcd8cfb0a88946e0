//! Errors of servers: a negative result word. Numbers as in the C library's `errno.h`; those from 201 on are
//! our own: which share ([`crate::share`]) is used up.

/// The first that no C library has.
pub const OWN: i64 = 201;

macro_rules! errnos {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: i64 = $value;)*
        /// The sentence for an error number, positive or negative.
        pub const fn text(error: i64) -> &'static str {
            match error.abs() { $($value => $text,)* _ => "unknown error" }
        }
        /// All names with numbers and texts, for generated headers.
        pub const ALL: &[(&str, i64, &str)] = &[$((stringify!($name), $value, $text)),*];
    };
}

errnos! {
    EPERM = 1, "not permitted";
    ENOENT = 2, "no such name";
    ESRCH = 3, "no such domain or thread";
    EINTR = 4, "interrupted";
    EIO = 5, "input or output failed";
    E2BIG = 7, "arguments too long";
    ENOEXEC = 8, "not a program";
    EBADF = 9, "not an open file";
    ECHILD = 10, "no such child";
    EAGAIN = 11, "limit reached, try again later";
    ENOMEM = 12, "out of memory";
    EACCES = 13, "the name server's policy refuses it";
    EFAULT = 14, "bad address";
    EBUSY = 16, "busy, try again";
    EEXIST = 17, "name already taken";
    ENOTDIR = 20, "not a directory";
    EISDIR = 21, "is a directory";
    EINVAL = 22, "invalid argument";
    ENFILE = 23, "too many open files in the system";
    EMFILE = 24, "too many open files or portals";
    ENOSPC = 28, "no space left";
    EROFS = 30, "read-only";
    EPIPE = 32, "nobody reads the pipe";
    ENAMETOOLONG = 91, "name too long";
    ENOPROTOOPT = 109, "no template is registered for a letter of the specification";
    EPROTO = 71, "the interface has another specification than expected";
    EPROTOTYPE = 107, "the interface asks for what the opener does not give";
    ENOSYS = 88, "not implemented";
    ETIMELIMITS = 201, "no more time limits for this program and what it has started";
    EINTERFACES = 202, "no more interfaces for this program and what it has started";
    ESEMAPHORES = 203, "no more semaphores for this program and what it has started";
    ESTACKS = 204, "no more stacks for this program and what it has started";
    ECODE = 205, "no more portal code for this program and what it has started";
    EPROGRAMS = 206, "no more programs for this program and what it has started";
    EPIPES = 207, "no more pipes for this program and what it has started";
    EFILES = 208, "no more open files for this program and what it has started";
    ETHREADS = 209, "no more threads for this program and what it has started";
    EHANDLERS = 210, "no more fault handlers for this program and what it has started";
    ERAM = 211, "no more room in /ram for this program and what it has started";
    ECAPABILITIES = 212, "no more capabilities for this program and what it has started";
    ETABLES = 215, "no more room in portal tables for this program and what it has started";
    EGIFTS = 214, "no more portals that others put into this table";
    ECOUNTERS = 213, "no more counters of calls for this program and what it has started";
}
