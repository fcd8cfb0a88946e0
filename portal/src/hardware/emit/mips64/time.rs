//! Time: 64 bits of it out of a counter that has 32, and the next interrupt of the clock.
//!
//! The last time that was read is kept in memory. Since then fewer than 2^32 ticks have passed, for the clock
//! interrupts oftener; so the difference of the lower halves is what has passed.

use super::*;

/// What [`Emitter::time`] uses besides the register of the result.
pub(super) const TIMED: u32 = 1 << T2 | 1 << T3;

/// Ticks from now to the clock's interrupt, at least and at most. What has passed before it was set would
/// come a whole turn of the counter later.
const LEAST: i32 = 16;
const MOST: u64 = 0x7fff_0000;
/// If it has passed all the same (an emulator may be stopped between two instructions): from then on.
const AGAIN: i32 = 1 << 14;

impl Emitter<'_, Mips64> {
    pub(super) fn time(&mut self, to: Reg) {
        let low = self.high(T2, map::KDATA_VA + map::TIME_OFF);
        self.put(mfc0(T3, c0::COUNT));
        self.put(ld(to, T2, low));
        self.put(dsubu(T3, T3, to));
        self.put(dext(T3, T3, 0, 32));
        self.put(daddu(to, to, T3));
        self.put(sd(to, T2, low));
    }

    /// At the time in `a1`.
    pub(super) fn set_timer(&mut self) {
        self.time(V0);
        self.put(sltu(V1, V0, A1));
        self.put(dsubu(V0, A1, V0));
        self.put(movz(V0, ZERO, V1));
        self.put(daddiu(T2, ZERO, LEAST));
        self.put(sltu(V1, V0, T2));
        self.put(movn(V0, T2, V1));
        self.constant(T2, MOST);
        self.put(sltu(V1, T2, V0));
        self.put(movn(V0, T2, V1));
        self.put(mfc0(V1, c0::COUNT));
        self.put(daddu(V0, V0, V1));
        self.put(mtc0(V0, c0::COMPARE));
        self.put(mfc0(V1, c0::COUNT));
        self.put(dsubu(V0, V0, V1));
        self.put(sll(V0, V0, 0));
        let ahead = self.open(bgtz(V0, 0));
        self.put(daddiu(V0, V1, AGAIN));
        self.put(mtc0(V0, c0::COMPARE));
        self.join(ahead);
        self.scrub(TIMED);
    }
}
