//! Calls through portals: the few instructions that put an index and words into registers and execute `ecall`.
//!
//! The portal returns to `ra`, so a call is a jump to an `ecall` with no code behind it. A nonzero transport status becomes
//! [`Broken`]; what the callee answered, errors included, is the value. Two never reach a caller of [`call`] or [`call_wide`], since they say that
//! the call did not take place, and it is repeated until it does: `MOVED`, from a server that is being replaced, and `WAIT`, from one that will wake
//! this thread when there is something to come back for ([`crate::wait`]).

use core::arch::asm;
use core::fmt;
use core::mem::MaybeUninit;
use pebble_abi::{errno, status, sys};

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

/// The only `ecall` of most components: the portal goes on where `ra` says, which is behind the jump to here.
#[unsafe(naked)]
extern "C" fn trap() {
    core::arch::naked_asm!("ecall")
}

/// Word `i`, or whatever the register holds: the portal scrubs what its specification does not take.
#[inline(always)]
fn word<const N: usize>(p: [u64; N], i: usize) -> MaybeUninit<u64> {
    const { assert!(N <= 5, "five words at most") };
    if i < N { MaybeUninit::new(p[i]) } else { MaybeUninit::uninit() }
}

/// Invokes portal `index` with `p`: as many words as its specification takes. Missing ones are whatever the registers hold.
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
    repeat(broken, || call_once(index, [a, b, c, d, e]))
}

#[cold]
#[inline(never)]
fn again_wide(broken: Broken, index: usize, a: u64, b: u64, c: u64, d: u64, e: u64) -> Result<Wide, Broken> {
    repeat(broken, || call_wide_once(index, [a, b, c, d, e]))
}

/// Repeats a call as long as it has not taken place, but can.
#[cold]
pub(crate) fn repeat<R>(
    mut broken: Broken,
    mut attempt: impl FnMut() -> Result<R, Broken>,
) -> Result<R, Broken> {
    loop {
        broken.await_turn()?;
        match attempt() {
            Err(next) => broken = next,
            result => return result,
        }
    }
}

/// Ticks between attempts at a server that is being replaced: a tenth of a millisecond. It lets less urgent threads finish the replacement.
const PAUSE: u64 = 1000;

impl Broken {
    /// The server is being replaced, and the call did not take place.
    #[inline]
    pub const fn moved(self) -> bool {
        status::code(self.0) == status::MOVED
    }

    /// Waits until the call, which did not take place, can be made again: the server is being replaced, or will wake this thread. An error: it is
    /// not to be repeated; the wait was cut short by the end of the calling domain, or of the call's time.
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
    pub const fn errno(self) -> i64 {
        if status::code(self.0) == status::INTERRUPTED { errno::EINTR } else { errno::EIO }
    }
}

/// As [`call`], but for `MOVED` and `WAIT`, which are errors like any other: for callees that never answer so, or callers that still
/// have the words.
#[inline]
pub fn call_once<const N: usize>(index: usize, p: [u64; N]) -> Result<i64, Broken> {
    let (value, status): (i64, u64);
    // SAFETY: a portal call changes only registers that the C convention lets a callee change, and memory of
    // this component only where the callee was lent it; the code after the call is named in `ra`.
    unsafe {
        asm!(
            "jal ra, {trap}",
            trap = sym trap,
            in("t0") index,
            inlateout("a1") word(p, 0) => status,
            in("a2") word(p, 1), in("a3") word(p, 2), in("a4") word(p, 3), in("a5") word(p, 4),
            lateout("a0") value,
            clobber_abi("C"),
        );
    }
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
    let (value, status): (i64, u64);
    let mut more = [0u64; 4];
    // SAFETY: as in `call`.
    unsafe {
        asm!(
            "jal ra, {trap}",
            trap = sym trap,
            in("t0") index,
            inlateout("a1") word(p, 0) => status,
            inlateout("a2") word(p, 1) => more[0],
            inlateout("a3") word(p, 2) => more[1],
            inlateout("a4") word(p, 3) => more[2],
            inlateout("a5") word(p, 4) => more[3],
            lateout("a0") value,
            clobber_abi("C"),
        );
    }
    if status == 0 { Ok((value, more)) } else { Err(Broken(status)) }
}

/// As [`call`], with the transport error folded into a negative value: for servers that treat it like any other failure.
#[inline]
pub fn call_or<const N: usize>(index: usize, p: [u64; N], error: i64) -> i64 {
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
    unsafe {
        asm!(
            "ecall",
            in("t0") sys::RETURN, in("a0") value,
            in("a2") more[0], in("a3") more[1], in("a4") more[2], in("a5") more[3],
            options(noreturn),
        )
    }
}

/// Leaves through a tail portal with as many words as its specification takes, one at most: whoever called this entry continues when the target
/// returns.
#[inline]
pub fn tail<const N: usize>(index: usize, p: [u64; N]) -> ! {
    const { assert!(N <= 1, "one word at most") };
    // SAFETY: nothing of this activation is used again: the stack is the exclusive domain's, which starts afresh at each entry.
    unsafe { asm!("ecall", in("t0") index, in("a1") word(p, 0), options(noreturn)) }
}

/// The time counter, in ticks of 100 ns: readable without a portal.
#[inline]
pub fn time() -> u64 {
    let ticks;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) ticks, options(nomem, nostack)) }
    ticks
}

/// Instructions from before the stub of a call to behind it, the counter read once more included: what a measurement takes.
/// The stub is the shortest there is: index into `t0`, jump to the `ecall`, which returns behind the jump.
#[inline(always)]
pub fn timed_call(index: usize, p: [u64; 5]) -> u64 {
    let (before, after): (u64, u64);
    // SAFETY: as in `call`; `s2` and `s3` are kept by every portal.
    unsafe {
        asm!(
            "rdinstret s2",
            "mv t0, {index}",
            "jal 2f",
            "rdinstret s3",
            "j 3f",
            "2: ecall",
            "3:",
            index = in(reg) index,
            inlateout("a1") p[0] => _,
            in("a2") p[1], in("a3") p[2], in("a4") p[3], in("a5") p[4],
            out("s2") before, out("s3") after,
            clobber_abi("C"),
        );
    }
    after - before
}

/// Instructions retired, for measurements.
#[inline]
pub fn instructions() -> u64 {
    let count;
    // SAFETY: reads a counter; the compiler keeps it in place relative to other volatile code.
    unsafe { asm!("rdinstret {}", out(reg) count, options(nostack)) }
    count
}
