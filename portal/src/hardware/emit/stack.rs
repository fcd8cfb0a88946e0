//! Stacks of `n`: the head of the callee's queue taken and given back, and the way out to the scheduler when
//! a stack or a thread word is not there.
//!
//! `T2` holds the queue's address, `T3` its head, `T4` the stack behind it. Every test
//! that fails branches to one place behind the leg, which undoes what was saved and asks for the call to be
//! made again ([`Emitter::join_waits`]).

use super::*;
use crate::hardware::ir;
use pebble_abi::map;

/// A domain's queue, from as much behind [`map::STACKS_END`] as its word is behind the first.
const QUEUE: i32 = (map::STACK_QUEUES_OFF as i64 - map::STACKS_END_OFF as i64) as i32;

/// What a processor has of its own where stacks are taken.
pub(super) trait Stacks: Instructions {
    /// Temporaries that a step of the scheduler's leaves behind.
    const USED: u32;

    /// For a step of the scheduler's with the stacks of the domain in its first word. `T1` becomes an address
    /// from which the queue's head is reached ([`QUEUE`]), `T2` that of what is kept, `T3` and `T4` the two ends, the result 0.
    fn find_queues(e: &mut Emitter<Self>);
    /// The branch that is taken unless the address in `T5` is above that in `T3`: it is no stack's. `T6` is
    /// scratch.
    fn branch_unless_stack(e: &mut Emitter<Self>) -> Label;
    /// To the common code that waits, with the callee's number in `T2`, and with nothing of the nucleus in
    /// registers that it hands to the user. `last`: the last of the branches that lead here.
    fn wait(e: &mut Emitter<Self>, last: Label);
}

impl<A: Stacks> Emitter<'_, A> {
    /// Head of the stack queue in `T3`, and the word behind it.
    pub(super) fn find_stack(&mut self) {
        self.hole(A::T2, Hole::Queue);
        self.put(A::load(A::T3, A::T2, 0));
        self.put(A::load(A::T4, A::T3, 0));
    }

    pub(super) fn give_stack(&mut self, word: u8) {
        self.load(A::T3, word);
        self.hole(A::T2, Hole::Queue);
        self.put(A::load(A::T4, A::T2, 0));
        self.put(A::store(A::T4, A::T3, 0));
        self.put(A::store(A::T3, A::T2, 0));
    }

    /// One step of the scheduler's. Domain 0 has no stack, and its head is no address.
    pub(super) fn stacks(&mut self, what: ir::Stacks) {
        A::find_queues(self);
        match what {
            ir::Stacks::Keep => {
                self.put(A::load(A::T5, A::T1, QUEUE));
                let none = A::branch_unless_stack(self);
                self.put(A::load(A::T6, A::T5, 0));
                self.put(A::store(A::T6, A::T1, QUEUE));
                self.put(A::load(A::T6, A::T2, 0));
                self.put(A::store(A::T6, A::T5, 0));
                self.put(A::store(A::T5, A::T2, 0));
                self.moved_one();
                self.join(none);
                self.put(A::load(A::T5, A::T1, QUEUE));
                let left = self.open_alone(A::branch_unequal(A::T5, A::T3));
                self.put(A::store(A::T4, A::T1, QUEUE));
                self.join(left);
            }
            ir::Stacks::Offer => {
                self.put(A::load(A::T5, A::T2, 0));
                let none = A::branch_unless_stack(self);
                self.put(A::load(A::T6, A::T5, 0));
                self.put(A::store(A::T6, A::T2, 0));
                self.put(A::load(A::T6, A::T1, QUEUE));
                let others = self.open_alone(A::branch_unequal(A::T6, A::T4));
                self.put(A::copy(A::T6, A::T3));
                self.join(others);
                self.put(A::store(A::T6, A::T5, 0));
                self.put(A::store(A::T5, A::T1, QUEUE));
                self.moved_one();
                self.join(none);
            }
            ir::Stacks::Release => {
                self.put(A::load(A::T5, A::T1, QUEUE));
                // What comes behind does no harm on the other way.
                let some = self.open(A::branch_unequal(A::T5, A::T4));
                self.put(A::load(A::T6, A::T2, 0));
                self.put(A::store(A::T6, A::T1, QUEUE));
                self.put(A::store(A::T3, A::T2, 0));
                self.moved_one();
                self.join(some);
            }
        }
        self.scrub(A::USED);
    }

    fn moved_one(&mut self) {
        self.put(A::add_number(A::VALUE, A::ZERO, 1));
    }

    /// Waits and calls again if this register is 0.
    pub(super) fn wait(&mut self, reg: Reg) {
        self.wait_if(A::branch_equal(reg, A::ZERO));
    }

    pub(super) fn wait_if(&mut self, branch: u32) {
        let branch = self.open(branch);
        let fits = self.waits.try_push(branch).is_ok();
        self.a.demand(fits);
    }

    /// Into the common code that waits.
    pub(super) fn join_waits(&mut self) {
        let Some(last) = self.waits.last().copied() else { return };
        for i in 0..self.waits.len() {
            self.join(self.waits[i]);
        }
        self.hole(A::T2, Hole::Callee);
        A::wait(self, last);
    }
}
