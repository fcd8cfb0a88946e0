//! Limbo: where code of portals waits that are closed, until no thread can return through it.
//!
//! Problem: a closed portal may be under way, in as many threads as there are. Strategy: its code stays as it is.
//! Now and then all invocation stacks are walked, each frame once, and what none of them mentions is free.
//! Invariant: nothing is freed on a doubt.

use crate::Machine;
use crate::arena::{Run, sort};
use crate::frames::{self, Current};
use crate::made::LIMBO;
use crate::manager::{Manager, Slot};
use crate::reopening::PLACES;
use pebble_arch::Arch;

/// In the length of a run in limbo, a multiple of 64: some thread may return through it.
const USED: u32 = 1;

impl<A: Arch> Manager<A> {
    /// The portal's code may be reused once no thread can return through it.
    pub(crate) fn discard(&mut self, slot: Slot) {
        self.free_counter(slot.counter);
        self.bury(slot.run);
    }

    /// Into limbo.
    pub(crate) fn bury(&mut self, run: Run) {
        if run.len > 0 {
            self.made.limbo.push(run);
            self.made.shared |= run.host != 0;
        }
    }

    /// It is worth looking through what is in limbo: there is much that was not there the last time, or
    /// somebody sees stacks until it has gone.
    pub fn untidy(&self) -> bool {
        self.made.shared || self.made.limbo.len() >= self.made.kept + LIMBO
    }

    /// Frees what is in limbo and mentioned by no thread's invocation stack. Each frame is looked at once:
    /// programs decide how many there are, and how much stays in limbo, and everybody else's requests wait
    /// for this.
    pub fn sweep(&mut self, machine: &mut impl Machine, current: Current) {
        self.sweep_without(machine, current, None);
    }

    /// The same, and if no frame mentions this retired domain, which then has no portals any more, of its
    /// code too. Whether that is so.
    pub(crate) fn sweep_without(
        &mut self,
        machine: &mut impl Machine,
        current: Current,
        dead: Option<u16>,
    ) -> bool {
        for place in 0..PLACES {
            self.made.reopening.give_up(place).into_iter().for_each(|run| self.bury(run));
        }
        // Its memory stays for the next.
        let mut limbo = core::mem::take(&mut self.made.limbo);
        sort(&mut limbo);
        let end = self.code.thread_end;
        let mut mentioned = false;
        let doubt = machine.threads().any(|tid| {
            frames::any::<A>(machine, tid, current, end, |frame| {
                mentioned |= dead.is_some_and(|dead| frame.caller == dead || frame.callee == dead);
                let behind = limbo.partition_point(|run| u64::from(run.at) <= frame.code);
                let run = behind.checked_sub(1).map(|n| &mut limbo[n]);
                run.filter(|run| run.contains(frame.code)).into_iter().for_each(|run| run.len |= USED);
                false
            })
        });
        if let (Some(asid), false) = (dead, doubt || mentioned) {
            // Frames of its portals would mention it, so their code waits for nobody.
            core::mem::take(&mut self.domains[usize::from(asid)].slots).each_used(|_, slot| {
                self.free_counter(slot.counter);
                match limbo.last_mut().filter(|last| last.is_before(&slot.run)) {
                    Some(last) => last.len += slot.run.len,
                    None if slot.run.len > 0 => limbo.push(slot.run),
                    None => {}
                }
            });
        }
        let mut shared = false;
        limbo.retain_mut(|run| {
            let used = doubt || run.len & USED != 0;
            run.len &= !USED;
            if !used {
                shared |= run.host != 0;
                self.made.arena.give(*run);
            }
            used
        });
        self.made.kept = limbo.len();
        self.made.shared = limbo.iter().any(|run| run.host != 0);
        self.made.limbo = limbo;
        if shared {
            self.hide_stacks(machine);
        }
        !doubt && !mentioned
    }
}
