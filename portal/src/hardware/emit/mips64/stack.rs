//! Stacks of `n`, as mips64 finds and compares them.

use super::*;
use crate::hardware::emit::Stacks;

/// What a call has used before it waits: for a stack, and for a window.
const USED: u32 = 1 << T2 | 1 << T3 | 1 << T4 | 1 << T5;
const USED_BY_WINDOWS: u32 = USED | 1 << T1 | 1 << V1 | 1 << A6 | 1 << A7;

/// From one end of a stack queue to the other.
const WANTED: i32 = map::STACKS_WANTED.wrapping_sub(map::STACKS_END) as i32;

impl Stacks for Mips64 {
    const USED: u32 = 0b111 << T1 | 1 << T4 | 1 << T5 | 1 << T6;

    fn find_queues(e: &mut Emitter<Self>) {
        let low = e.high(T3, map::STACKS_END);
        e.put(daddiu(T3, T3, low));
        e.put(daddiu(T4, T3, WANTED));
        e.put(andi(T1, A1, map::MAX_DOMAINS as u32 - 1));
        e.put(dsll(T1, T1, 3));
        e.put(daddu(T2, T1, T4));
        e.put(daddu(T1, T1, T3));
        e.put(copy(V0, ZERO));
    }

    fn branch_unless_stack(e: &mut Emitter<Self>) -> Label {
        e.put(sltu(T6, T3, T5));
        e.open_alone(beq(T6, ZERO, 0))
    }

    /// The common code finds the number in `DEPC`.
    fn wait(e: &mut Emitter<Self>, _last: Label) {
        e.put(dmtc0(T2, c0::DEPC));
        e.put(ehb());
        match e.after_save {
            true => {
                let cause = if e.shape == Shape::Interrupt { &[A0] } else { &[][..] };
                e.restore(&[T2, T3, T4, T5], false);
                e.restore(cause, false);
            }
            false if e.first.is_some() => e.scrub(USED_BY_WINDOWS),
            false => e.scrub(USED),
        }
        e.go_on(sys::NO_STACK);
    }
}

impl Emitter<'_, Mips64> {
    /// Waits and calls again if the queue is at an end, or its last stack is for whoever waits
    /// (`map::STACKS_END`).
    pub(super) fn wait_unless_found(&mut self) {
        self.put(sltu(T5, T4, T2));
        self.wait_if(bne(T5, ZERO, 0));
    }
}
