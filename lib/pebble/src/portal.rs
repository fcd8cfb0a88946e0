//! Calls through portals: a few instructions of the processor's ([`crate::arch`]), and what comes back.
//!
//! A nonzero transport status becomes
//! [`Broken`]; what the callee answered, errors included, is the value. Two never reach a caller of [`call`]
//! or [`call_wide`], since they say that the call did not take place, and it is repeated until it does:
//! `MOVED`, from a server that is being replaced, and `WAIT`, from one that will wake this thread when there
//! is something to come back for ([`crate::wait`]).

use crate::arch::call::{self as arch, Word};
use crate::arch::register;
use crate::buffer;
use core::fmt;
use pebble_abi::errno::{self, Errno};
use pebble_abi::{status, sys};

/// The call did not come back from the callee: transport status of `pebble_abi::status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub u64);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match status::code(self.0) {
            status::DEAD => "died in the call",
            status::CLOSED => "has closed this portal",
            status::INTERRUPTED => "interrupted the wait",
            status::MOVED => "is being replaced",
            status::WAIT => "has nothing for it yet",
            status::WINDOW => "may not lend this memory, or did not give it back",
            status::TIMEOUT => "had the call when its time was over",
            status::LIMITS => "has as many time limits as it may have",
            status::CAPABILITY => "does not have this capability, or may not pass it",
            status::CONSENT => {
                let ((letter, opener), exporter) = (status::missing(self.0), status::domain(self.0));
                return write!(
                    f,
                    "domain {exporter} asks for the letter {letter}, which domain {opener} does not give"
                );
            }
            letter @ 0x41..=0x5a => {
                let letter = letter as u8 as char;
                return write!(f, "domain {}: letter {letter} refused the word", status::domain(self.0));
            }
            _ => "failed",
        };
        write!(f, "domain {} {what}", status::domain(self.0))
    }
}

/// Value and four further words.
pub type Wide = (i64, [u64; 4]);

/// Word `i`, or whatever the register holds: the portal scrubs what its specification does not take.
#[inline(always)]
fn word<const N: usize>(p: [u64; N], i: usize) -> Word {
    const { assert!(N <= 5, "five words at most") };
    if i < N { Word::new(p[i]) } else { Word::uninit() }
}

/// All that a portal can take.
#[inline(always)]
fn words<const N: usize>(p: [u64; N]) -> [Word; 5] {
    [word(p, 0), word(p, 1), word(p, 2), word(p, 3), word(p, 4)]
}

/// Invokes portal `index` with `p`: as many words as its specification takes. Missing ones are whatever the
/// registers hold.
#[inline]
pub fn call<const N: usize>(index: usize, p: [u64; N]) -> Result<i64, Broken> {
    match call_once(index, p) {
        Err(broken) => again(broken, index, first(p, 0), first(p, 1), first(p, 2), first(p, 3), first(p, 4)),
        result => result,
    }
}

/// Word `i`, if there is one. One by one, in registers: an array would be stored on the way of every call.
#[inline(always)]
fn first<const N: usize>(p: [u64; N], i: usize) -> u64 {
    if i < N { p[i] } else { 0 }
}

#[cold]
#[inline(never)]
fn again(broken: Broken, index: usize, a: u64, b: u64, c: u64, d: u64, e: u64) -> Result<i64, Broken> {
    repeat_with(broken, [a, b, c, d, e], || call_once(index, [a, b, c, d, e]))
}

#[cold]
#[inline(never)]
fn again_wide(broken: Broken, index: usize, a: u64, b: u64, c: u64, d: u64, e: u64) -> Result<Wide, Broken> {
    repeat_with(broken, [a, b, c, d, e], || call_wide_once(index, [a, b, c, d, e]))
}

/// Repeats a call as long as it has not taken place, but can: one that lends no page of a stack.
#[cold]
pub(crate) fn repeat<R>(broken: Broken, attempt: impl FnMut() -> Result<R, Broken>) -> Result<R, Broken> {
    repeat_unless(broken, |_| false, attempt)
}

/// The same for a call with these words: also once pages have come that it lends.
#[cold]
fn repeat_with<R>(
    broken: Broken,
    words: [u64; 5],
    attempt: impl FnMut() -> Result<R, Broken>,
) -> Result<R, Broken> {
    let mended = |broken: Broken| status::code(broken.0) == status::WINDOW && buffer::have_come(words);
    repeat_unless(broken, mended, attempt)
}

/// Repeats a call when its turn has come, or at once if what broke it is mended.
fn repeat_unless<R>(
    mut broken: Broken,
    mended: impl Fn(Broken) -> bool,
    mut attempt: impl FnMut() -> Result<R, Broken>,
) -> Result<R, Broken> {
    loop {
        if !mended(broken) {
            broken.await_turn()?;
        }
        match attempt() {
            Err(next) => broken = next,
            result => return result,
        }
    }
}

/// Ticks between attempts at a server that is being replaced: a tenth of a millisecond. It lets less urgent
/// threads finish the replacement.
const PAUSE: u64 = MILLISECOND / 10;

impl Broken {
    /// The server is being replaced, and the call did not take place.
    #[inline]
    pub const fn moved(self) -> bool {
        status::code(self.0) == status::MOVED
    }

    /// Waits until the call, which did not take place, can be made again: the server is being replaced, or
    /// will wake this thread. An error: it is not to be repeated; the wait was cut short by the end of the
    /// calling domain, or of the call's time.
    #[cold]
    #[inline(never)]
    pub(crate) fn await_turn(self) -> Result<(), Broken> {
        match status::code(self.0) {
            status::WAIT if call_once(sys::SYS_PARK, []) == Ok(0) => Ok(()),
            status::WAIT => Err(Broken(self.0 - status::WAIT + status::INTERRUPTED)),
            status::MOVED if call_once(sys::SYS_HRSLEEP, [time() + PAUSE]) == Ok(0) => Ok(()),
            _ => Err(self),
        }
    }

    /// What became of the call, as an error number.
    pub const fn errno(self) -> Errno {
        if status::code(self.0) == status::INTERRUPTED { errno::EINTR } else { errno::EIO }
    }
}

/// As [`call`], but for `MOVED` and `WAIT`, which are errors like any other: for callees that never answer
/// so, or callers that still have the words.
#[inline]
pub fn call_once<const N: usize>(index: usize, p: [u64; N]) -> Result<i64, Broken> {
    // SAFETY: memory of this component changes only where the callee was lent it.
    let (value, status) = unsafe { arch::call(index, words(p)) };
    if status == 0 { Ok(value) } else { Err(Broken(status)) }
}

/// Invokes a portal whose specification promises more result words (`>1` to `>4`).
#[inline]
pub fn call_wide<const N: usize>(index: usize, p: [u64; N]) -> Result<Wide, Broken> {
    match call_wide_once(index, p) {
        Err(broken) => {
            again_wide(broken, index, first(p, 0), first(p, 1), first(p, 2), first(p, 3), first(p, 4))
        }
        result => result,
    }
}

/// [`call_wide`] without repetition.
#[inline]
pub fn call_wide_once<const N: usize>(index: usize, p: [u64; N]) -> Result<Wide, Broken> {
    // SAFETY: as in `call`.
    let (value, status, more) = unsafe { arch::call_wide(index, words(p)) };
    if status == 0 { Ok((value, more)) } else { Err(Broken(status)) }
}

/// As [`call`], with the transport error folded into a negative value: for servers that treat it like any
/// other failure.
#[inline]
pub fn call_or<const N: usize>(index: usize, p: [u64; N], error: Errno) -> i64 {
    call(index, p).unwrap_or(-error)
}

/// Returns to the caller of the running entry, with further result words.
///
/// # Safety
/// Nothing of this activation is used again, and the preserved registers are not put back: the entry's portal
/// must be one that restores them (`p` or `f`).
#[doc(hidden)]
#[inline(always)]
pub unsafe fn leave(value: i64, more: [u64; 4]) -> ! {
    // SAFETY: as the caller promises.
    unsafe { arch::leave_wide(value, more) }
}

/// Leaves through a tail portal with as many words as its specification takes, one at most: whoever called
/// this entry continues when the target returns.
#[inline]
pub fn tail<const N: usize>(index: usize, p: [u64; N]) -> ! {
    const { assert!(N <= 1, "one word at most") };
    // SAFETY: nothing of this activation is used again: the stack is the exclusive domain's, which starts
    // afresh at each entry.
    unsafe { arch::leave(index, word(p, 0)) }
}

/// Ticks in a millisecond.
pub const MILLISECOND: u64 = pebble_abi::map::TIME_HZ / 1000;

/// The time counter, in ticks: readable without a portal.
#[inline]
pub fn time() -> u64 {
    register::time()
}

/// What [`counter`] counts from before the stub of a call to behind it, the counter read once more included:
/// what a measurement takes.
#[inline(always)]
pub fn timed_call(index: usize, p: [u64; 5]) -> u64 {
    // SAFETY: as in `call`.
    unsafe { arch::timed_call(index, p) }
}

pub use register::{COUNTED, COUNTS_PER_TICK};

/// The processor's finest counter, for measurements: of [`COUNTED`].
#[inline]
pub fn counter() -> u64 {
    register::counter()
}
