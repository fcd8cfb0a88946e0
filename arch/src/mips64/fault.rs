//! What `Cause` says (MIPS64 Architecture For Programmers, volume III, "Cause Register").

use crate::Cause;
use pebble_abi::map;

/// Of `Cause`: the kind of exception.
pub const KIND_SHIFT: u32 = 2;
const KIND: u64 = 31;
pub const CALL: u64 = 8;
/// The instruction is in the delay slot of the branch at which the program counter stands.
const DELAYED: u64 = 1 << 31;
/// Which coprocessor there is not.
const COPROCESSOR: u32 = 28;
/// Interrupt 7 is the clock's.
const TIMER: u64 = 1 << 15;

pub(super) const fn is_timer(code: u64) -> bool {
    code & TIMER != 0
}

/// The processor tells loads from fetches by the address alone. What it has as address otherwise is that of
/// some fault before, of whomever's.
pub(super) const fn cause(code: u64, value: u64, pc: u64) -> (Cause, u64) {
    let at = if code & DELAYED != 0 { pc.wrapping_add(4) } else { pc };
    let fetched = value == at;
    // Addresses that user mode has not: nothing is mapped there.
    let upper = value >= map::USER_END;
    let kind = code >> KIND_SHIFT & KIND;
    match kind {
        2 if fetched => (Cause::Fetch, value),
        2 => (Cause::Load, value),
        1 | 3 => (Cause::Store, value),
        4 if fetched && upper && value.is_multiple_of(4) => (Cause::Fetch, value),
        4 if fetched => (Cause::FetchMisaligned, value),
        4 if upper => (Cause::Load, value),
        4 => (Cause::LoadMisaligned, value),
        5 if upper => (Cause::Store, value),
        5 => (Cause::StoreMisaligned, value),
        6 => (Cause::FetchNowhere, at),
        7 => (Cause::LoadNowhere, 0),
        CALL => (Cause::Call, 0),
        9 => (Cause::Breakpoint, 0),
        11 if code >> COPROCESSOR & 3 == 2 => (Cause::Aborted, 0),
        10 | 11 => (Cause::Illegal, at),
        _ => (Cause::Other, kind),
    }
}
