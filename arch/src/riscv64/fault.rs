//! What `scause` says of an exception (The RISC-V Instruction Set Manual, volume II, "Supervisor Cause
//! Register").

use super::regs::ABORT;
use crate::Cause;

/// `ecall` from user mode: a portal is invoked.
pub const CALL: u64 = 8;
pub const FETCH_PAGE_FAULT: u64 = 12;
pub const LOAD_PAGE_FAULT: u64 = 13;
pub const STORE_PAGE_FAULT: u64 = 15;

/// Of an interrupt, whose highest bit is set.
const TIMER: u64 = 5;

pub(super) const fn is_timer(code: u64) -> bool {
    code & 0xff == TIMER
}

pub(super) const fn cause(code: u64, value: u64) -> (Cause, u64) {
    let cause = match code {
        0 => Cause::FetchMisaligned,
        1 => Cause::FetchNowhere,
        2 if value == ABORT as u64 => Cause::Aborted,
        2 => Cause::Illegal,
        3 => Cause::Breakpoint,
        4 => Cause::LoadMisaligned,
        5 => Cause::LoadNowhere,
        6 => Cause::StoreMisaligned,
        7 => Cause::StoreNowhere,
        CALL => Cause::Call,
        FETCH_PAGE_FAULT => Cause::Fetch,
        LOAD_PAGE_FAULT => Cause::Load,
        STORE_PAGE_FAULT => Cause::Store,
        _ => return (Cause::Other, code),
    };
    (cause, value)
}
