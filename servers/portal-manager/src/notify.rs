//! Telling a controller that its table has changed, before the call that changed it returns.
//!
//! **Problem.** Whoever changes the table may be a server that holds a lock; a function of the controller
//! that never returned would hold it for ever. And controllers nest: each notification changes the next
//! table.
//!
//! **Strategy.** Nobody is called. The thread's frame by which the controller left is given another address
//! to return to: the controller's own, which asks for the changes ([`Manager::notice`]), tells its function
//! of each, and goes on at the address that it is given at last. So a detour costs neither frames nor stacks,
//! runs when all servers have returned, and a controller that dawdles in it keeps nobody but itself. What the
//! function changes, by the first line that it prints for example, is told when it has returned: the calls
//! that it makes return to it without a detour.
//!
//! **Invariants:** a detour is kept for a frame that exists, or is dropped when the thread's next one is
//! made; a domain learns only of its own table, and can send astray only itself; a thread has at most one
//! detour for each place in its stack.

use crate::Machine;
use crate::frames::{self, Current};
use crate::manager::{Manager, UNMADE};
use pebble_abi::errno::{self, Errno};
use pebble_abi::map;
use pebble_abi::words::Asid;
use pebble_arch::Arch;

/// Changes that a domain may be told of later; the oldest are forgotten.
const NOTICES: usize = 256;

/// A thread that goes to its domain's `notify` first.
pub(crate) struct Detour {
    tid: u16,
    pub asid: u16,
    /// Of the frame by which it left the domain; calls made from the detour have theirs in the same place.
    base: u64,
    /// Where it goes on.
    from: u64,
    /// The function is being told of changes.
    telling: bool,
}

impl Detour {
    pub(crate) fn is(&self, tid: u16, base: u64) -> bool {
        (self.tid, self.base) == (tid, base)
    }
}

impl<A: Arch> Manager<A> {
    /// Where the domain goes on after calls that change its table; 0: where it was.
    pub fn set_notify(&mut self, asid: Asid, address: u64) -> Result<(), Errno> {
        let domain = self.domain(asid)?;
        if address >= map::USER_END {
            return Err(errno::EINVAL);
        }
        domain.notify = address;
        domain.notices.clear();
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn changed(&mut self, asid: u16, index: u16) {
        // Few have asked to be told.
        if self.domains[asid as usize].notify != 0 {
            self.tell_of(asid, index);
        }
    }

    #[inline(never)]
    fn tell_of(&mut self, asid: u16, index: u16) {
        if !self.request.changes.contains(&(asid, index)) {
            self.request.changes.push((asid, index));
        }
    }

    /// Somebody must be told of what the request has changed.
    pub fn news(&self) -> bool {
        !self.request.changes.is_empty()
    }

    /// Sends the thread on its detours.
    pub fn announce(&mut self, machine: &mut impl Machine, current: Current) {
        // Its memory stays for the next.
        let mut changes = core::mem::take(&mut self.request.changes);
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
        self.request.changes = changes;
    }

    /// The innermost frame of the domain leads to its `notify`. Whether there is one.
    fn detour(&mut self, machine: &mut impl Machine, current: Current, asid: u16) -> bool {
        let mut base = None;
        frames::any::<A>(machine, current.tid, current, self.code.thread_end, |f| {
            base = (f.caller == asid).then_some(f.base);
            base.is_some()
        });
        let (Some(base), to) = (base, self.domains[asid as usize].notify) else { return false };
        let Current { tid, top } = current;
        let top = top - map::thread_va(tid);
        let from = machine.thread_word(tid, base);
        let known = self.detours.iter().find(|d| d.is(tid, base) && d.asid == asid);
        if !known.is_some_and(|d| d.telling || from == to) {
            self.detours.retain(|d| d.tid != tid || d.base < top && d.base != base);
            self.detours.push(Detour { tid, asid, base, from, telling: false });
            machine.set_thread_word(tid, base, to);
        }
        true
    }

    /// The next change for the domain whose frame is at `base`: its index; or where the thread goes on.
    pub fn notice(&mut self, asid: u16, tid: u16, base: u64) -> Result<u16, u64> {
        let detour = self.detours.iter().position(|d| d.is(tid, base) && d.asid == asid);
        let notices = &mut self.domains[asid as usize].notices;
        if let Some(n) = notices.iter().position(|(t, _)| *t == tid || *t == UNMADE) {
            detour.into_iter().for_each(|n| self.detours[n].telling = true);
            return Ok(notices.remove(n).1);
        }
        detour.map_or(Err(0), |n| Err(self.detours.swap_remove(n).from))
    }
}
