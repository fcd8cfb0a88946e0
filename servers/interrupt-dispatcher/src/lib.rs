//! The interrupt dispatcher: which device was it?
//!
//! The interrupt portal has saved everything and enters here, with interrupts off. The timer goes on to the scheduler's `tick`, a
//! device to its `irq`, through tail portals: the scheduler returns straight to whatever thread runs next. A device's
//! interrupt stays claimed at the PLIC, so it cannot repeat, until its driver says `ack`.
//!
//! Semaphore `n` belongs to PLIC source `n`.
#![no_std]
#![forbid(unsafe_code)]

/// `scause` of a timer interrupt, without the interrupt bit.
pub const TIMER: u64 = 5;

/// Registers of the PLIC for hart 0 in S-mode (context 1), and where the manifest maps their pages.
pub mod plic {
    /// Pages in the manifest: priorities, enables, threshold and claim.
    pub const PRIORITY_PAGE: usize = 0;
    pub const ENABLE_PAGE: usize = 1;
    pub const CONTEXT_PAGE: usize = 2;
    pub const SOURCES: u64 = 64;
    /// Offset in its page: one bit a source.
    pub const ENABLE: usize = 0x80;
    pub const THRESHOLD: usize = 0;
    pub const CLAIM: usize = 4;
}

/// What an interrupt's cause asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Claim,
}

#[inline]
pub fn action(cause: u64) -> Action {
    if cause & 0xff == TIMER { Action::Tick } else { Action::Claim }
}

/// Enable word and bit of a source; `None` for one that the board does not have.
pub fn enable_bit(source: u64) -> Option<(usize, u32)> {
    (1..plic::SOURCES)
        .contains(&source)
        .then(|| (plic::ENABLE + source as usize / 32 * 4, 1 << (source % 32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_ticks_and_devices_are_claimed() {
        assert_eq!(action(1 << 63 | 5), Action::Tick);
        assert_eq!(action(1 << 63 | 9), Action::Claim);
    }

    #[test]
    fn only_real_sources_can_be_enabled() {
        assert_eq!(enable_bit(10), Some((0x80, 1 << 10)));
        assert_eq!(enable_bit(33), Some((0x84, 2)));
        assert_eq!(enable_bit(0), None);
        assert_eq!(enable_bit(64), None);
    }
}
