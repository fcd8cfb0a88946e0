//! Stacks of `n`: the head of the callee's queue taken and given back, and the way out to the scheduler when a stack or a thread word is
//! not there.
//!
//! `t2` holds the queue's upper address, `t3` its head, `t4` the stack behind it. Every test that fails branches to one place behind the
//! leg, which undoes what was saved and asks for the call to be made again ([`Emitter::join_waits`]).

use super::*;

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

    /// Waits and calls again if the queue is at an end, or its last stack is for whoever waits (`map::STACKS_END`, which `t2` is).
    pub(super) fn wait_unless_found(&mut self) {
        self.full |= self.waits.try_push(self.here()).is_err();
        self.put(bltu(T4, T2, 0));
    }

    /// Waits and calls again if this register is 0.
    pub(super) fn wait(&mut self, reg: Reg) {
        self.full |= self.waits.try_push(self.here()).is_err();
        self.put(beq(reg, ZERO, 0));
    }

    /// Into the common code that waits, which finds the callee's number in `stval`, with nothing of the nucleus in registers that it hands
    /// to the user.
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
    fn written_before(&self, end: usize) -> u32 {
        let writes = |word: &&u32| !matches!(**word & 0x7f, 0x23 | 0x27 | 0x63);
        let words = self.code.words.iter().take(end);
        words.filter(writes).fold(0, |set, word| set | 1 << (word >> 7 & 31)) & !1
    }
}
