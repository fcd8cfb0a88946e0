//! Calls of portals, and the ways out of an entry.
//!
//! A portal comes back where `$31` says, which the compiler does not let assembly name as changed. So the
//! plain call is a function to it, whose convention is the portal's but for one register; the others keep
//! `$31` in a preserved one.

use core::arch::{asm, naked_asm};
use core::mem::MaybeUninit;
use pebble_abi::sys;

/// A word for a portal, or whatever the register holds.
pub type Word = MaybeUninit<u64>;

/// Value and status, as the convention returns two words.
#[repr(C)]
struct Pair(i64, u64);

/// The only `syscall` of most components.
#[unsafe(naked)]
extern "C" fn trap(_: usize, _: Word, _: Word, _: Word, _: Word, _: Word) -> Pair {
    naked_asm!("move $12, $4", "syscall")
}

/// Invokes a portal: value and status.
///
/// # Safety
/// As the portal does what it says: memory of this component changes only where the callee was lent it.
#[inline(always)]
pub unsafe fn call(index: usize, p: [Word; 5]) -> (i64, u64) {
    let Pair(value, status) = trap(index, p[0], p[1], p[2], p[3], p[4]);
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
    // SAFETY: a portal call changes only registers that the C convention lets a callee change; `$16` is kept
    // by every portal.
    unsafe {
        asm!(
            ".set push",
            ".set noreorder",
            "move $16, $31",
            "jal {trap}",
            "nop",
            "move $31, $16",
            ".set pop",
            trap = sym trap,
            inlateout("$4") index => _,
            inlateout("$5") p[0] => _,
            inlateout("$6") p[1] => more[0],
            inlateout("$7") p[2] => more[1],
            inlateout("$8") p[3] => more[2],
            inlateout("$9") p[4] => more[3],
            lateout("$2") value, lateout("$3") status,
            lateout("$10") _, lateout("$11") _, lateout("$12") _, lateout("$13") _, lateout("$14") _,
            lateout("$15") _,
            out("$16") _, lateout("$24") _, lateout("$25") _,
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
    unsafe { asm!("syscall", in("$12") index, in("$5") word, options(noreturn)) }
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
            "syscall",
            in("$12") sys::RETURN, in("$2") value,
            in("$6") more[0], in("$7") more[1], in("$8") more[2], in("$9") more[3],
            options(noreturn),
        )
    }
}

/// What [`counter`](super::register::counter) counts from before the stub of a call to behind it, its second
/// reading included: what a measurement takes. The stub is the shortest there is: jump to the `syscall`,
/// which returns behind the jump, with the index in its delay slot.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn timed_call(index: usize, p: [u64; 5]) -> u64 {
    let (before, after): (u64, u64);
    // SAFETY: as in `call_wide`; `$16` to `$18` are kept by every portal.
    unsafe {
        asm!(
            ".set push",
            ".set noreorder",
            "move $18, $31",
            "rdhwr $16, $2",
            "bal 2f",
            "move $12, $4",
            "rdhwr $17, $2",
            "b 3f",
            "move $31, $18",
            "2: syscall",
            "3:",
            ".set pop",
            inlateout("$4") index => _,
            inlateout("$5") p[0] => _,
            inlateout("$6") p[1] => _,
            inlateout("$7") p[2] => _,
            inlateout("$8") p[3] => _,
            inlateout("$9") p[4] => _,
            out("$16") before, out("$17") after, out("$18") _,
            lateout("$2") _, lateout("$3") _, lateout("$10") _, lateout("$11") _, lateout("$12") _,
            lateout("$13") _, lateout("$14") _, lateout("$15") _, lateout("$24") _, lateout("$25") _,
        );
    }
    (after as u32).wrapping_sub(before as u32).into()
}
