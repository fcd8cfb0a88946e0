//! Calls of portals, and the ways out of an entry.

use core::arch::{asm, naked_asm};
use core::mem::MaybeUninit;
use pebble_abi::sys;

/// A word for a portal, or whatever the register holds.
pub type Word = MaybeUninit<u64>;

/// The only `ecall` of most components: the portal goes on where `ra` says, which is behind the jump to here.
#[unsafe(naked)]
extern "C" fn trap() {
    naked_asm!("ecall")
}

/// Invokes a portal: value and status.
///
/// # Safety
/// As the portal does what it says: memory of this component changes only where the callee was lent it.
#[inline(always)]
pub unsafe fn call(index: usize, p: [Word; 5]) -> (i64, u64) {
    let (value, status): (i64, u64);
    // SAFETY: a portal call changes only registers that the C convention lets a callee change; the code after
    // the call is named in `ra`.
    unsafe {
        asm!(
            "jal ra, {trap}",
            trap = sym trap,
            in("t0") index,
            inlateout("a1") p[0] => status,
            in("a2") p[1], in("a3") p[2], in("a4") p[3], in("a5") p[4],
            lateout("a0") value,
            clobber_abi("C"),
        );
    }
    (value, status)
}

/// The same, with four further words.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call_wide(index: usize, p: [Word; 5]) -> (i64, u64, [u64; 4]) {
    let (value, status): (i64, u64);
    let mut more = [0u64; 4];
    // SAFETY: as in `call`.
    unsafe {
        asm!(
            "jal ra, {trap}",
            trap = sym trap,
            in("t0") index,
            inlateout("a1") p[0] => status,
            inlateout("a2") p[1] => more[0],
            inlateout("a3") p[2] => more[1],
            inlateout("a4") p[3] => more[2],
            inlateout("a5") p[4] => more[3],
            lateout("a0") value,
            clobber_abi("C"),
        );
    }
    (value, status, more)
}

/// Leaves for good through the portal at `index`.
///
/// # Safety
/// Nothing of this activation is used again.
#[inline(always)]
pub unsafe fn leave(index: usize, word: Word) -> ! {
    // SAFETY: as the caller promises.
    unsafe { asm!("ecall", in("t0") index, in("a1") word, options(noreturn)) }
}

/// Returns to the caller of the running entry, with further result words.
///
/// # Safety
/// As for [`leave`]; and the preserved registers are not put back: the entry's portal must be one that
/// restores them (`p` or `f`).
#[inline(always)]
pub unsafe fn leave_wide(value: i64, more: [u64; 4]) -> ! {
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

/// Instructions from before the stub of a call to behind it, the counter read once more included: what a
/// measurement takes. The stub is the shortest there is: index into `t0`, jump to the `ecall`, which returns
/// behind the jump.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn timed_call(index: usize, p: [u64; 5]) -> u64 {
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
