//! Open files, standard input and output.
//!
//! A few bytes travel in registers, `call::IO_BYTES` a call. Many travel by windows, a page a call
//! ([`page`]). A write says with each call how many are left, by which the console keeps together what was
//! written together. Paths choose the server: `/dev/console`, `/pipe/...`, everything else the file server.
//! Standard files are opened at first use, by the paths in the program's start-up page; a server has none and
//! writes nowhere. What goes to standard output or error goes to a file's end: several programs may have the
//! same, as the shell's `2>&1` and `>>` want it.

mod flip;
mod page;
mod shown;
mod startup;

use crate::api::{Errno, answer};
use crate::portal::{Broken, Wide, call, call_once, call_wide_once, repeat};
use crate::region::STARTUP;
use crate::sync::Lock;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
pub use flip::Page;
use pebble_abi::call::IO_BYTES;
use pebble_abi::link::{PATHLEN, Startup, pack, unpack};
use pebble_abi::{errno, sys};
pub use startup::{args, environment};

/// First of its portals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File(pub usize);

pub fn open(path: &str) -> Result<File, Errno> {
    let words = pack::<5>(path).ok_or(errno::ENAMETOOLONG)?;
    let server = if path.starts_with("/dev/console") {
        sys::SYS_CONSOLE_OPEN
    } else if path.starts_with("/pipe/") {
        sys::SYS_PIPE_OPEN
    } else {
        sys::SYS_FILE_OPEN
    };
    answer(call(server, words)).map(|index| File(index as usize))
}

/// Opens what is written at its end alone, wherever that is by then, by whomever else it is written. A
/// console or pipe has no other place.
pub fn open_at_end(path: &str) -> Result<File, Errno> {
    let file = open(path)?;
    if !path.starts_with("/dev/console") && !path.starts_with("/pipe/") {
        file.seek(0, sys::SEEK_APPEND).inspect_err(|_| file.close())?;
    }
    Ok(file)
}

/// The same, of a file under `/ram/` that is made if it is not there.
pub fn append(path: &str) -> Result<File, Errno> {
    static MAKE: AtomicUsize = AtomicUsize::new(0);
    loop {
        let opened = open_at_end(path);
        if opened != Err(errno::ENOENT) {
            return opened;
        }
        // Somebody else may be quicker, and others may remove it again.
        match at_path(&MAKE, "file.make", path) {
            Ok(made) => File(made).close(),
            Err(errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
}

/// An empty file under `/ram/`.
pub fn create(path: &str) -> Result<File, Errno> {
    static CREATE: AtomicUsize = AtomicUsize::new(0);
    at_path(&CREATE, "file.create", path).map(File)
}

/// Removes a file under `/ram/`.
pub fn remove(path: &str) -> Result<(), Errno> {
    static REMOVE: AtomicUsize = AtomicUsize::new(0);
    at_path(&REMOVE, "file.remove", path).map(|_| ())
}

/// Calls an interface that takes a path; its portal is opened at first use.
fn at_path(portal: &AtomicUsize, name: &str, path: &str) -> Result<usize, Errno> {
    let words = pack::<5>(path).ok_or(errno::ENAMETOOLONG)?;
    if portal.load(Ordering::Relaxed) == 0 {
        portal.store(crate::api::portal_open(name)?, Ordering::Relaxed);
    }
    answer(call(portal.load(Ordering::Relaxed), words)).map(|answer| answer as usize)
}

impl File {
    /// As many bytes as one call brings; 0 at the end.
    #[inline]
    pub fn read(&self, out: &mut [u8]) -> Result<usize, Errno> {
        if out.len() > IO_BYTES { self.read_many(out, IO_BYTES) } else { self.read_few(out) }
    }

    /// All of `out`, for who knows that there are so many; fewer are an error.
    pub fn read_exact(&self, out: &mut [u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < out.len() {
            let rest = &mut out[done..];
            let sure = rest.len();
            match if sure > IO_BYTES { self.read_many(rest, sure) } else { self.read_few(rest) }? {
                0 => return Err(errno::EIO),
                count => done += count,
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn read_many(&self, out: &mut [u8], sure: usize) -> Result<usize, Errno> {
        match page::read(self, out, sure) {
            Some(read) => read,
            None => self.read_few(&mut out[..IO_BYTES]),
        }
    }

    #[inline(always)]
    fn read_few(&self, out: &mut [u8]) -> Result<usize, Errno> {
        let want = out.len();
        let (count, words) = match call_wide_once(self.0 + sys::FILE_READ, [want as u64]) {
            Ok(done) => done,
            Err(broken) => self.read_again(want, broken)?,
        };
        let count = (Errno::answer(count)? as usize).min(want);
        words_to_bytes(words, &mut out[..count]);
        Ok(count)
    }

    /// When there is something to read, or the server that is being replaced has a successor.
    #[cold]
    #[inline(never)]
    fn read_again(&self, want: usize, broken: Broken) -> Result<Wide, Errno> {
        repeat(broken, || call_wide_once(self.0 + sys::FILE_READ, [want as u64])).map_err(Broken::errno)
    }

    /// All of it.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.len() > IO_BYTES { self.write_many(bytes) } else { self.write_few(bytes) }
    }

    #[inline(never)]
    fn write_many(&self, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        while rest.len() > IO_BYTES
            && let Some(written) = page::write(self, rest)
        {
            match written? {
                0 => return Err(errno::EIO),
                count => rest = &rest[count..],
            }
        }
        self.write_few(rest)
    }

    #[inline(always)]
    fn write_few(&self, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = rest.len().min(IO_BYTES);
            let [a, b, c, d] = bytes_to_words(&rest[..count]);
            match call_once(self.0 + sys::FILE_WRITE, [rest.len() as u64, a, b, c, d]) {
                Ok(done) if done > 0 => rest = &rest[(done as usize).min(count)..],
                // The words need not be kept for this: they are made again.
                Err(broken) => broken.await_turn().map_err(Broken::errno)?,
                Ok(0) => return Err(errno::EIO),
                Ok(error) => return Err(Errno::of(error)),
            }
        }
        Ok(())
    }

    pub fn seek(&self, offset: i64, whence: u64) -> Result<u64, Errno> {
        answer(call(self.0 + sys::FILE_SEEK, [offset as u64, whence]))
    }

    pub fn close(self) {
        let _ = call(self.0 + sys::FILE_CLOSE, []);
        page::close(&self);
        let _ = crate::api::portal_close(self.0, sys::FILE_PORTALS);
    }
}

/// Up to `IO_BYTES` bytes as words, zero behind them. A single word stays in its register.
#[inline]
pub(crate) fn bytes_to_words(bytes: &[u8]) -> [u64; IO_BYTES / 8] {
    if bytes.len() <= 8 {
        return [bytes_to_word(bytes), 0, 0, 0];
    }
    let mut words = [0; IO_BYTES / 8];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = chunk.try_into().map_or_else(|_| bytes_to_word(chunk), u64::from_le_bytes);
    }
    words
}

#[inline]
fn bytes_to_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The inverse: fills `out`, at most `IO_BYTES`.
#[inline]
pub(crate) fn words_to_bytes(words: [u64; IO_BYTES / 8], out: &mut [u8]) {
    if out.len() <= 8 {
        return word_to_bytes(words[0], out);
    }
    for (word, chunk) in words.into_iter().zip(out.chunks_mut(8)) {
        match <&mut [u8; 8]>::try_from(&mut *chunk) {
            Ok(whole) => *whole = word.to_le_bytes(),
            Err(_) => word_to_bytes(word, chunk),
        }
    }
}

#[inline]
fn word_to_bytes(mut word: u64, out: &mut [u8]) {
    for byte in out {
        *byte = word as u8;
        word >>= 8;
    }
}

/// For file servers: the portals of an open file, made in the table of the domain that called. The server
/// exports read, write, seek and close one after the other, and behind them read_page and write_page if it
/// has them.
pub struct FilePortals {
    /// Name of its read interface.
    read: &'static str,
    /// That interface's number, once asked for.
    first: AtomicUsize,
}

impl FilePortals {
    const UNKNOWN: usize = usize::MAX;

    pub const fn new(read: &'static str) -> Self {
        FilePortals { read, first: AtomicUsize::new(Self::UNKNOWN) }
    }

    /// Index of the first; `control` is compiled into all four.
    pub fn create(&self, control: u64) -> Result<usize, Errno> {
        crate::api::portal_create_known(self.first()?, sys::FILE_PORTALS as u64, control)
    }

    /// The answer to a seek with that `whence`, if it is about a page.
    pub fn page(&self, control: u64, whence: u64) -> Option<Result<usize, Errno>> {
        let which = match whence {
            sys::SEEK_READ_PAGE => 0,
            sys::SEEK_WRITE_PAGE => 1,
            _ => return None,
        };
        let interface = self.first().map(|first| first + sys::FILE_PORTALS as u64 + which);
        Some(interface.and_then(|interface| crate::api::portal_create_known(interface, 1, control)))
    }

    fn first(&self) -> Result<u64, Errno> {
        if self.first.load(Ordering::Relaxed) == Self::UNKNOWN {
            self.first.store(crate::api::own_interface(self.read)? as usize, Ordering::Relaxed);
        }
        Ok(self.first.load(Ordering::Relaxed) as u64)
    }
}

/// Portal indices of the standard files once open.
static STANDARD: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Whether this domain was started as a program, with a start-up page.
static PROGRAM: AtomicUsize = AtomicUsize::new(0);

/// Set by [`crate::program!`] before anything else.
pub fn set_program() {
    PROGRAM.store(1, Ordering::Relaxed);
}

pub fn is_program() -> bool {
    PROGRAM.load(Ordering::Relaxed) != 0
}

/// Standard file 0, 1 or 2.
pub fn standard(n: usize) -> Result<File, Errno> {
    let index = STANDARD[n].load(Ordering::Relaxed);
    if index != 0 {
        return Ok(File(index));
    }
    if !is_program() {
        return Err(errno::EBADF);
    }
    let mut path = [0; PATHLEN];
    let path = standard_text(n, &mut path);
    let file = if n == 0 { open(path) } else { open_at_end(path) }?;
    STANDARD[n].store(file.0, Ordering::Relaxed);
    Ok(file)
}

/// The path of standard file 0, 1 or 2 of a program: for another program that is to have the same.
pub fn standard_path(n: usize) -> alloc::string::String {
    standard_text(n, &mut [0; PATHLEN]).into()
}

fn standard_text(n: usize, path: &mut [u8; PATHLEN]) -> &str {
    let mut words = [0; 5];
    for (i, word) in words.iter_mut().enumerate() {
        *word = STARTUP.read(([Startup::STDIN, Startup::STDOUT, Startup::STDERR][n] + i * 8) as u64);
    }
    let len = unpack(&words, path);
    core::str::from_utf8(&path[..len]).unwrap_or_default()
}

/// Text for standard file 1 or 2, gathered into lines: each is written at once.
struct Output {
    standard: usize,
    bytes: [u8; 256],
    len: usize,
}

static OUTPUT: Lock<Output> = Lock::new(Output::new(1));

impl Output {
    const fn new(standard: usize) -> Self {
        Output { standard, bytes: [0; 256], len: 0 }
    }

    fn flush(&mut self) {
        let bytes = &self.bytes[..core::mem::take(&mut self.len)];
        if !bytes.is_empty()
            && is_program()
            && let Err(error) = standard(self.standard).and_then(|file| file.write(bytes))
        {
            LOST[self.standard].store(error.number() as usize, Ordering::Relaxed);
        }
    }
}

/// What went to standard output (1) or error (2) and was lost: the error number.
static LOST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// What a program ends with: who has lost what it said has not succeeded, and the process server tells why:
/// it does not know itself.
pub(crate) fn last_word(status: i64) -> u64 {
    let [_, out, err] = [0, 1, 2].map(|n: usize| LOST[n].load(Ordering::Relaxed) as u64);
    match if err != 0 { err } else { out } {
        0 => status as u64,
        error => (if status == 0 { 1 } else { status as u64 & 0xff }) | error << 32,
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.len == self.bytes.len() {
                self.flush();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
            if byte == b'\n' {
                self.flush();
            }
        }
        Ok(())
    }
}

pub fn flush() {
    if is_program() {
        OUTPUT.lock().flush();
    }
}

#[doc(hidden)]
pub fn print(args: fmt::Arguments) {
    let _ = fmt::Write::write_fmt(&mut *OUTPUT.lock(), args);
}

#[doc(hidden)]
pub fn eprint(args: fmt::Arguments) {
    let mut output = Output::new(2);
    let _ = fmt::Write::write_fmt(&mut output, args);
    output.flush();
}

pub(crate) fn panic_message(info: &core::panic::PanicInfo) {
    if is_program() {
        eprint(format_args!("{info}\n"));
    }
}

#[macro_export]
macro_rules! print {
    ($($t:tt)*) => { $crate::io::print(format_args!($($t)*)) };
}

#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($t:tt)+) => { $crate::io::print(format_args!("{}\n", format_args!($($t)+))) };
}

#[macro_export]
macro_rules! eprintln {
    ($($t:tt)+) => { $crate::io::eprint(format_args!("{}\n", format_args!($($t)+))) };
}

/// `program!(main)`: as [`crate::component!`] for a program that the process server starts: with arguments
/// and standard files.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! program {
    ($main:ident) => {
        #[unsafe(no_mangle)]
        fn pebble_main() -> i64 {
            $crate::io::set_program();
            $main()
        }
    };
}
