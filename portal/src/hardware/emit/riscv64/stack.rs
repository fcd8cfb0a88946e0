//! Stacks of `n`: the head of the callee's queue taken and given back, and the way out to the scheduler when
//! a stack or a thread word is not there.
//!
//! `t2` holds the queue's upper address, `t3` its head, `t4` the stack behind it. Every test that fails
//! branches to one place behind the leg, which undoes what was saved and asks for the call to be made again
//! ([`Emitter::join_waits`]).

use super::*;
use crate::hardware::ir::Stacks;

impl Emitter<'_> {
    pub(super) fn give_stack(&mut self, queue: u64, word: u8) {
        self.load(T3, word);
        let low = self.high(T2, queue);
        self.put(ld(T4, T2, low));
        self.put(sd(T4, T3, 0));
        self.put(sd(T3, T2, low));
    }

    /// Head of the stack queue, and the word behind it.
    pub(super) fn find_stack(&mut self, queue: u64) -> i32 {
        let low = self.high(T2, queue);
        self.put(ld(T3, T2, low));
        self.put(ld(T4, T3, 0));
        low
    }

    /// One step of the scheduler's with the stacks of the domain in `a1`: `t1` and `t2` are the addresses of
    /// the queue's head and of what is kept, `t3` and `t4` the two ends, `t5` and `t6` stacks.
    pub(super) fn stacks(&mut self, what: Stacks) {
        self.put(andi(T1, A0 + 1, map::MAX_DOMAINS as i32 - 1));
        self.put(slli(T1, T1, 3));
        self.high(T3, map::STACKS_END);
        self.high(T4, map::STACKS_WANTED);
        self.put(add(T2, T1, T4));
        self.put(add(T1, T1, T3));
        self.put(addi(A0, ZERO, 0));
        match what {
            Stacks::Keep => {
                self.put(ld(T5, T1, 0));
                let none = self.open(bgeu(T3, T5, 0));
                self.put(ld(T6, T5, 0));
                self.put(sd(T6, T1, 0));
                self.put(ld(T6, T2, 0));
                self.put(sd(T6, T5, 0));
                self.put(sd(T5, T2, 0));
                self.put(addi(A0, ZERO, 1));
                self.join(none);
                self.put(ld(T5, T1, 0));
                let left = self.open(bne(T5, T3, 0));
                self.put(sd(T4, T1, 0));
                self.join(left);
            }
            Stacks::Offer => {
                self.put(ld(T5, T2, 0));
                let none = self.open(bgeu(T3, T5, 0));
                self.put(ld(T6, T5, 0));
                self.put(sd(T6, T2, 0));
                self.put(ld(T6, T1, 0));
                let others = self.open(bne(T6, T4, 0));
                self.put(addi(T6, T3, 0));
                self.join(others);
                self.put(sd(T6, T5, 0));
                self.put(sd(T5, T1, 0));
                self.put(addi(A0, ZERO, 1));
                self.join(none);
            }
            Stacks::Release => {
                self.put(ld(T5, T1, 0));
                let some = self.open(bne(T5, T4, 0));
                self.put(ld(T6, T2, 0));
                self.put(sd(T6, T1, 0));
                self.put(sd(T3, T2, 0));
                self.put(addi(A0, ZERO, 1));
                self.join(some);
            }
        }
        self.scrub(0b11 << T1 | 0b1111 << T3);
    }

    /// Waits and calls again if the queue is at an end, or its last stack is for whoever waits
    /// (`map::STACKS_END`, which `t2` is).
    pub(super) fn wait_unless_found(&mut self) {
        self.wait_if(bltu(T4, T2, 0));
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

    /// Into the common code that waits, which finds the callee's number in `stval`, with nothing of the
    /// nucleus in registers that it hands to the user.
    pub(super) fn join_waits(&mut self) {
        let Some(last) = self.waits.last().copied() else { return };
        let dirty = self.written_before(last);
        for i in 0..self.waits.len() {
            self.join(self.waits[i]);
        }
        self.put(addi(T2, ZERO, i32::from(self.c.callee.asid)));
        self.put(csrrw(ZERO, csr::STVAL, T2));
        if self.after_save {
            self.restore(&[T2, T3, T4], self.c.caller.float);
        } else if self.shape != Shape::Call {
            // What the fast way writes it has not.
            self.scrub(1 << T1 | 1 << T2 | 1 << T3 | 1 << T4);
        } else {
            self.scrub(dirty);
        }
        self.put(ld(GP, ZERO, sys::NO_STACK as i32 * 8));
        self.put(jalr(ZERO, GP, 0));
    }

    /// Registers that the code before this instruction writes.
    fn written_before(&self, end: Label) -> u32 {
        let writes = |word: &&u32| !matches!(**word & 0x7f, 0x23 | 0x27 | 0x63);
        let words = self.a.before(end).iter();
        words.filter(writes).fold(0, |set, word| set | 1 << (word >> 7 & 31)) & !1
    }
}
