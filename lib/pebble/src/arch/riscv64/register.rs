//! Counters, the thread pointer, and what the processor must be told.

use core::arch::asm;

/// The time counter, in ticks.
#[inline(always)]
pub fn time() -> u64 {
    let ticks;
    // SAFETY: reads a counter.
    unsafe { asm!("rdtime {}", out(reg) ticks, options(nomem, nostack)) }
    ticks
}

/// What [`counter`] counts, and how many of them are a tick where the emulator counts too.
pub const COUNTED: &str = "instructions";
pub const COUNTS_PER_TICK: u64 = 100;

/// Instructions retired.
#[inline(always)]
pub fn counter() -> u64 {
    let count;
    // SAFETY: reads a counter; the compiler keeps it in place relative to other volatile code.
    unsafe { asm!("rdinstret {}", out(reg) count, options(nostack)) }
    count
}

/// One more section in the lowest bits of the thread pointer (`pebble_abi::thread::SECTION`).
///
/// # Safety
/// Nobody else uses these bits.
#[inline(always)]
pub unsafe fn enter_section() {
    // SAFETY: as the caller promises.
    unsafe { asm!("addi tp, tp, 1", options(nostack)) }
}

/// One less.
///
/// # Safety
/// As above; the section has been entered.
#[inline(always)]
pub unsafe fn leave_section() {
    // SAFETY: as the caller promises.
    unsafe { asm!("addi tp, tp, -1", options(nostack)) }
}

/// Makes instruction fetches see code written before.
#[inline(always)]
pub fn fence_instructions() {
    // SAFETY: orders fetches after stores; touches nothing.
    unsafe { asm!("fence.i") }
}

/// A page's address that the compiler takes for unknown, so that it stays in one register: a constant is made
/// again at every use.
#[inline(always)]
pub fn opaque<const PAGE: u64>() -> u64 {
    let base: u64;
    // SAFETY: touches nothing but that register.
    unsafe { asm!("lui {0}, {1}", out(reg) base, const PAGE >> 12, options(pure, nomem, nostack)) };
    base
}
