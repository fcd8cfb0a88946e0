//! Telling a controller that its table has changed, before the call that changed it returns.
//!
//! **Problem.** Whoever changes the table may be a server that holds a lock; a function of the controller that never returned would hold
//! it for ever. And controllers nest: each notification changes the next table.
//!
//! **Strategy.** Nobody is called. The thread's frame by which the controller left is given another address to return to: the
//! controller's own, which asks for the changes ([`Manager::notice`]), tells its function of each, and goes on at the address that it
//! is given at last. So a detour costs neither frames nor stacks, runs when all servers have returned, and a
//! controller that dawdles in it keeps nobody but itself.
//!
//! **Invariants:** a detour is kept for a frame that exists, or is dropped when the thread's next one is made; a domain
//! learns only of its own table, and can send astray only itself.

use crate::Machine;
use crate::frames::{self, Current};
use crate::manager::{Manager, UNMADE};
use pebble_abi::{errno, map};

/// Changes that a domain may be told of later; the oldest are forgotten.
const NOTICES: usize = 256;

impl Manager {
    /// Where the domain goes on after calls that change its table; 0: where it was.
    pub fn set_notify(&mut self, asid: u64, address: u64) -> Result<(), i64> {
        let domain = self.domain(asid)?;
        if address >= map::USER_END {
            return Err(errno::EINVAL);
        }
        domain.notify = address;
        domain.notices.clear();
        Ok(())
    }

    pub(crate) fn changed(&mut self, asid: u16, index: u16) {
        if self.domains[asid as usize].notify != 0 && !self.changes.contains(&(asid, index)) {
            self.changes.push((asid, index));
        }
    }

    /// Somebody must be told of what the request has changed.
    pub fn news(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Sends the thread on its detours.
    pub fn announce(&mut self, machine: &mut impl Machine, current: Current) {
        // Its memory stays for the next.
        let mut changes = core::mem::take(&mut self.changes);
        for (asid, index) in changes.drain(..) {
            let told = self.detour(machine, current, asid);
            let notices = &mut self.domains[asid as usize].notices;
            let tid = if told { current.tid } else { UNMADE };
            notices.retain(|(t, i)| (*t, *i) != (tid, index));
            if notices.len() >= NOTICES {
                notices.remove(0);
            }
            notices.push((tid, index));
        }
        self.changes = changes;
    }

    /// The innermost frame of the domain leads to its `notify`. Whether there is one.
    fn detour(&mut self, machine: &mut impl Machine, current: Current, asid: u16) -> bool {
        let mut base = None;
        frames::any(machine, current.tid, current, self.code.thread_end, |f| {
            base = (f.caller == asid).then_some(f.base);
            base.is_some()
        });
        let (Some(base), to) = (base, self.domains[asid as usize].notify) else { return false };
        let top = current.top - map::thread_va(current.tid);
        let from = machine.thread_word(current.tid, base);
        if from != to || !self.detours.iter().any(|d| (d.0, d.1) == (current.tid, base)) {
            self.detours.retain(|(tid, at, _)| *tid != current.tid || *at < top && *at != base);
            self.detours.push((current.tid, base, from));
            machine.set_thread_word(current.tid, base, to);
        }
        true
    }

    /// The next change for the domain whose frame is at `base`: its index; or where the thread goes on.
    pub fn notice(&mut self, asid: u16, tid: u16, base: u64) -> Result<u16, u64> {
        let notices = &mut self.domains[asid as usize].notices;
        if let Some(n) = notices.iter().position(|(t, _)| *t == tid || *t == UNMADE) {
            return Ok(notices.remove(n).1);
        }
        match self.detours.iter().position(|d| (d.0, d.1) == (tid, base)) {
            Some(n) => Err(self.detours.swap_remove(n).2),
            None => Err(0),
        }
    }
}
