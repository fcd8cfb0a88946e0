//! Stacks of `n`: the head of the callee's queue taken and given back, and the way out to the scheduler when
//! a stack or a thread word is not there.
//!
//! `T2` holds the address of domain 0's queue, which is that of an end, `T3` the head, `T4` the stack behind
//! it. Every test that fails branches to one place behind the leg, which undoes what was saved and asks for
//! the call to be made again ([`Emitter::join_waits`]).

use super::*;
use crate::hardware::ir::Stacks;

/// What a call has used before it waits: for a stack, and for a window.
const USED: u32 = 1 << T2 | 1 << T3 | 1 << T4 | 1 << T5;
const USED_BY_WINDOWS: u32 = USED | 1 << T1 | 1 << V1 | 1 << A6 | 1 << A7;

/// From one end of a stack queue to the other.
const WANTED: i32 = map::STACKS_WANTED.wrapping_sub(map::STACKS_END) as i32;

impl Emitter<'_> {
    pub(super) fn give_stack(&mut self, queue: u64, word: u8) {
        self.load(T3, word);
        let low = self.high(T2, queue);
        self.put(ld(T4, T2, low));
        self.put(sd(T4, T3, 0));
        self.put(sd(T3, T2, low));
    }

    /// Head of the stack queue, and the word behind it. Where the queue is from `T2`.
    pub(super) fn find_stack(&mut self, queue: u64) -> i32 {
        let at = queue.wrapping_sub(map::STACKS_END) as i32;
        let low = self.high(T2, map::STACKS_END);
        self.put(daddiu(T2, T2, low));
        self.put(ld(T3, T2, at));
        self.put(ld(T4, T3, 0));
        at
    }

    /// One step of the scheduler's with the stacks of the domain in `a1`: `T1` and `T2` are the addresses of
    /// the queue's head and of what is kept, `T3` and `T4` the two ends, `T5` and `T6` stacks.
    pub(super) fn stacks(&mut self, what: Stacks) {
        let low = self.high(T3, map::STACKS_END);
        self.put(daddiu(T3, T3, low));
        self.put(daddiu(T4, T3, WANTED));
        self.put(andi(T1, A1, map::MAX_DOMAINS as u32 - 1));
        self.put(dsll(T1, T1, 3));
        self.put(daddu(T2, T1, T4));
        self.put(daddu(T1, T1, T3));
        self.put(copy(V0, ZERO));
        // Domain 0 has no stack, and its head is no address.
        match what {
            Stacks::Keep => {
                self.put(ld(T5, T1, 0));
                self.put(sltu(T6, T3, T5));
                let none = self.open_alone(beq(T6, ZERO, 0));
                self.put(ld(T6, T5, 0));
                self.put(sd(T6, T1, 0));
                self.put(ld(T6, T2, 0));
                self.put(sd(T6, T5, 0));
                self.put(sd(T5, T2, 0));
                self.put(daddiu(V0, ZERO, 1));
                self.join(none);
                self.put(ld(T5, T1, 0));
                let left = self.open_alone(bne(T5, T3, 0));
                self.put(sd(T4, T1, 0));
                self.join(left);
            }
            Stacks::Offer => {
                self.put(ld(T5, T2, 0));
                self.put(sltu(T6, T3, T5));
                let none = self.open_alone(beq(T6, ZERO, 0));
                self.put(ld(T6, T5, 0));
                self.put(sd(T6, T2, 0));
                self.put(ld(T6, T1, 0));
                let others = self.open_alone(bne(T6, T4, 0));
                self.put(copy(T6, T3));
                self.join(others);
                self.put(sd(T6, T5, 0));
                self.put(sd(T5, T1, 0));
                self.put(daddiu(V0, ZERO, 1));
                self.join(none);
            }
            Stacks::Release => {
                self.put(ld(T5, T1, 0));
                let some = self.open(bne(T5, T4, 0));
                self.put(ld(T6, T2, 0));
                self.put(sd(T6, T1, 0));
                self.put(sd(T3, T2, 0));
                self.put(daddiu(V0, ZERO, 1));
                self.join(some);
            }
        }
        self.scrub(0b111 << T1 | 1 << T4 | 1 << T5 | 1 << T6);
    }

    /// Waits and calls again if the queue is at an end, or its last stack is for whoever waits
    /// (`map::STACKS_END`, which `T2` is).
    pub(super) fn wait_unless_found(&mut self) {
        self.put(sltu(T5, T4, T2));
        self.wait_if(bne(T5, ZERO, 0));
    }

    /// Waits and calls again if this register is 0.
    pub(super) fn wait(&mut self, reg: Reg) {
        self.wait_if(beq(reg, ZERO, 0));
    }

    fn wait_if(&mut self, branch: u32) {
        let branch = self.open(branch);
        let fits = self.waits.try_push(branch).is_ok();
        self.a.demand(fits);
    }

    /// Into the common code that waits, which finds the callee's number in `DEPC`, with nothing of the
    /// nucleus in registers that it hands to the user.
    pub(super) fn join_waits(&mut self) {
        if self.waits.is_empty() {
            return;
        }
        for i in 0..self.waits.len() {
            self.join(self.waits[i]);
        }
        self.put(daddiu(T2, ZERO, self.c.callee.asid.into()));
        self.put(dmtc0(T2, c0::DEPC));
        self.put(ehb());
        match self.after_save {
            true => {
                let cause = if self.shape == Shape::Interrupt { &[A0] } else { &[][..] };
                self.restore(&[T2, T3, T4, T5]);
                self.restore(cause);
            }
            false if self.first.is_some() => self.scrub(USED_BY_WINDOWS),
            false => self.scrub(USED),
        }
        self.go_on(sys::NO_STACK);
    }
}
