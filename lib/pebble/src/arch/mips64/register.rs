//! Counters, the thread pointer, and what the processor must be told.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use pebble_abi::sys;

/// The time counter, in ticks. The processor's has 32 bits, so this is a portal.
#[inline]
pub fn time() -> u64 {
    let none = [super::call::Word::uninit(); 5];
    // SAFETY: the portal reads a counter.
    unsafe { super::call::call(sys::SYS_HRTIME, none) }.0 as u64
}

/// What [`counter`] counts, and how many of them are a tick: it is the same counter.
pub const COUNTED: &str = "ticks";
pub const COUNTS_PER_TICK: u64 = 1;

/// The processor's counter, which no portal has to read: more than its 32 bits as long as each turn of it is
/// read at least once.
#[inline(always)]
pub fn counter() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (now, last): (u32, u64) = (count(), LAST.load(Ordering::Relaxed));
    let now = last + u64::from(now.wrapping_sub(last as u32));
    LAST.store(now, Ordering::Relaxed);
    now
}

#[inline(always)]
fn count() -> u32 {
    let count;
    // SAFETY: reads a counter; the compiler keeps it in place relative to other volatile code.
    unsafe { asm!("rdhwr $2, $2", lateout("$2") count, options(nostack)) }
    count
}

/// One more section in the lowest bits of the thread pointer (`pebble_abi::thread::SECTION`).
///
/// # Safety
/// Nobody else uses these bits.
#[inline(always)]
pub unsafe fn enter_section() {
    // SAFETY: as the caller promises.
    unsafe { asm!("daddiu $28, $28, 1", options(nostack)) }
}

/// One less.
///
/// # Safety
/// As above; the section has been entered.
#[inline(always)]
pub unsafe fn leave_section() {
    // SAFETY: as the caller promises.
    unsafe { asm!("daddiu $28, $28, -1", options(nostack)) }
}

/// Makes instruction fetches see code written before: the board that there is has no caches to be told.
#[inline(always)]
pub fn fence_instructions() {
    // SAFETY: orders memory; touches nothing.
    unsafe { asm!("sync") }
}

/// A page's address that the compiler takes for unknown, so that it stays in one register: a constant is made
/// again at every use.
#[inline(always)]
pub fn opaque<const PAGE: u64>() -> u64 {
    let base: u64;
    // SAFETY: touches nothing but that register.
    unsafe {
        asm!(
            "lui $2, {0}", "ori $2, $2, {1}", const PAGE >> 16, const PAGE & 0xffff,
            lateout("$2") base, options(pure, nomem, nostack)
        )
    };
    base
}
