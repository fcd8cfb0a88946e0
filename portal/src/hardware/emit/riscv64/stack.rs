//! Stacks of `n`, as rv64 finds and compares them.

use super::*;
use crate::hardware::emit::Stacks;

impl Stacks for Riscv64 {
    const USED: u32 = 0b11 << T1 | 0b1111 << T3;

    fn find_queues(e: &mut Emitter<Self>) {
        e.put(andi(T1, A1, map::MAX_DOMAINS as i32 - 1));
        e.put(slli(T1, T1, 3));
        e.high(T3, map::STACKS_END);
        e.high(T4, map::STACKS_WANTED);
        e.put(add(T2, T1, T4));
        e.put(add(T1, T1, T3));
        e.put(addi(A0, ZERO, 0));
    }

    fn branch_unless_stack(e: &mut Emitter<Self>) -> Label {
        e.open(bgeu(T3, T5, 0))
    }

    /// The common code finds the number in `stval`.
    fn wait(e: &mut Emitter<Self>, last: Label) {
        let dirty = e.written_before(last);
        e.put(csrrw(ZERO, csr::STVAL, T2));
        if e.after_save {
            e.restore(&[T2, T3, T4], e.c.caller.float);
        } else if e.shape != Shape::Call {
            // What the fast way writes it has not.
            e.scrub(1 << T1 | 1 << T2 | 1 << T3 | 1 << T4);
        } else {
            e.scrub(dirty);
        }
        e.put(ld(GP, ZERO, sys::NO_STACK as i32 * 8));
        e.put(jalr(ZERO, GP, 0));
    }
}

impl Emitter<'_, Riscv64> {
    /// Waits and calls again if the queue is at an end, or its last stack is for whoever waits
    /// (`map::STACKS_END`).
    pub(super) fn wait_unless_found(&mut self) {
        self.wait_if(bltu(T4, T2, 0));
    }

    /// Registers that the code before this instruction writes.
    fn written_before(&self, end: Label) -> u32 {
        let writes = |word: &&u32| !matches!(**word & 0x7f, 0x23 | 0x27 | 0x63);
        let words = self.a.before(end).iter();
        words.filter(writes).fold(0, |set, word| set | 1 << (word >> 7 & 31)) & !1
    }
}
