//! Errors of servers: a negative result word. Numbers as in the C library's `errno.h`; those from 201 on are
//! our own: which share ([`crate::share`]) is used up.
//!
//! An [`Errno`] is the error, a positive number; a result word is plain. `-errno::EINVAL` is the word by
//! which a server says so, [`Errno::answer`] what a client makes of it.

use core::{fmt, ops};

/// What a server has answered instead of a result.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(i64);

/// The first that no C library has.
pub const OWN: Errno = Errno(201);

impl Errno {
    /// The error of that number, which is positive.
    #[inline(always)]
    pub const fn new(number: i64) -> Self {
        Errno(number)
    }

    /// As `errno.h` has it.
    #[inline(always)]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The result word that says it; `-error` where that need not be a constant.
    #[inline(always)]
    pub const fn word(self) -> i64 {
        self.0.wrapping_neg()
    }

    /// The error that a negative result word says.
    #[inline(always)]
    pub const fn of(word: i64) -> Self {
        Errno(word.wrapping_neg())
    }

    /// What a result word says.
    #[inline(always)]
    pub const fn answer(word: i64) -> Result<u64, Errno> {
        if word < 0 { Err(Errno::of(word)) } else { Ok(word as u64) }
    }
}

impl ops::Neg for Errno {
    type Output = i64;

    #[inline(always)]
    fn neg(self) -> i64 {
        self.word()
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Errno({})", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

macro_rules! errnos {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: Errno = Errno($value);)*

        /// All that there are, for generated headers.
        pub const ALL: &[Errno] = &[$($name),*];

        impl Errno {
            /// What it is called here: `EINVAL`, if it is one of these.
            // Once in a program, and not at each place that prints one; the same below.
            #[inline(never)]
            pub fn name(self) -> Option<&'static str> {
                const NAMES: &[(Errno, &str)] = &[$(($name, stringify!($name))),*];
                NAMES.iter().find(|(error, _)| *error == self).map(|(_, name)| *name)
            }

            /// The sentence about it.
            #[inline(never)]
            pub fn text(self) -> &'static str {
                const TEXTS: &[(Errno, &str)] = &[$(($name, $text)),*];
                TEXTS.iter().find(|(error, _)| *error == self).map_or("unknown error", |(_, text)| text)
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_result_or_an_error() {
        assert_eq!((Errno::answer(0), Errno::answer(i64::MAX)), (Ok(0), Ok(i64::MAX as u64)));
        assert_eq!(Errno::answer(-22), Err(EINVAL));
        assert!(
            ALL.iter()
                .all(|error| Errno::answer(-*error) == Err(*error) && *error == Errno::new(error.number()))
        );
        // What no server means, one may say.
        let last = Errno::answer(i64::MIN).map_err(|error| (error.word(), error.text()));
        assert_eq!(last, Err((i64::MIN, "unknown error")));
    }

    #[test]
    fn it_costs_nothing_and_reads_as_what_it_is() {
        assert_eq!((size_of::<Errno>(), size_of::<Result<u64, Errno>>()), (8, 16));
        extern crate std;
        assert_eq!(std::format!("{EINVAL:?}: {EINVAL}"), "EINVAL: invalid argument");
        assert_eq!(std::format!("{:?}: {}", Errno::new(999), Errno::new(999)), "Errno(999): unknown error");
    }

    /// A name or number of its own for each.
    #[test]
    fn each_is_another() {
        for (n, error) in ALL.iter().enumerate() {
            assert!(error.number() > 0 && error.name().is_some(), "{error:?}");
            assert!(ALL[..n].iter().all(|other| other != error && other.name() != error.name()), "{error:?}");
        }
    }
}
