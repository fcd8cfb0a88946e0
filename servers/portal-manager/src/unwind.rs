//! Ending a call whose time is over.
//!
//! **Problem.** The thread is somewhere above the bounded call: it computes, sleeps, waits, in a domain that may not want to come back. Stacks,
//! windows and registers of every leg on its way must be given back as if the leg had returned.
//!
//! **Strategy.** Nothing is taken apart here: each leg is undone by its own return code. The places at which domains above the call would go on,
//! return addresses of calls and program counters of traps, are changed to the gate's second stub, which returns from the domain with
//! status `TIMEOUT`. So the thread, once it runs, falls from leg to leg. What the image's servers do on the way they finish: nobody finds
//! them half-way, and no lock of theirs stays taken.
//!
//! **Invariants:**
//! * only the bounded call ends: its frame stands right above the place that the clock has noted, was pushed by the domain that asked, and is not
//!   itself changed;
//! * the thread does not run meanwhile: whoever asks is more urgent than any thread with a bound, and nothing here waits;
//! * a domain of the image is not unwound.

use crate::Machine;
use crate::frames::{self, Current};
use crate::manager::{Goal, Manager};
use alloc::vec::Vec;
use pebble_abi::{errno, map, status, thread};

/// What has become of a late call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Who had the call.
    pub callee: u16,
    /// No server of the image waits: the wait may be cut short whatever it is for.
    pub cut: bool,
    /// Indices of V, in the portal manager's own table, by which domains that are unwound are told: once for each leg.
    pub told: Vec<u16>,
}

/// Threads that a domain is told of; the oldest are forgotten.
const NOTES: usize = 64;

/// How a domain is told that threads were taken out of it.
#[derive(Default)]
pub struct Watch {
    /// Index of P on its semaphore in the portal manager's own table; 0: it is not told.
    index: u16,
    threads: Vec<u16>,
}

/// A place where the thread would go on: offset in the thread block, domain.
type Place = (u64, u16);

impl Manager {
    /// Ends what `tid` does above `level`, the offset of an invocation stack's top word, in a call that `caller` has made from there.
    /// -ENOENT: there is no such call.
    pub fn unwind(
        &mut self,
        machine: &mut impl Machine,
        current: Current,
        tid: u16,
        level: u64,
        caller: u16,
    ) -> Result<Ended, i64> {
        if tid == current.tid || usize::from(tid) >= map::MAX_THREADS {
            return Err(errno::EINVAL);
        }
        let mut ended = Ended::default();
        let (mut places, mut bounded, mut top) = (Vec::<Place>::new(), None, true);
        frames::any(machine, tid, current, self.code.thread_end, |f| {
            let trap = f.caller == 0;
            let domain = if trap { self.trapped(machine, tid, f.top) } else { f.caller };
            if core::mem::take(&mut top) {
                ended.cut = self.waits(f.callee) && (f.base == level + 8 || !self.of_image(domain));
            }
            if f.base <= level + 8 {
                bounded = (f.base == level + 8 && domain == caller).then_some(f);
                return true;
            }
            if !self.of_image(domain) {
                places.push((if trap { pc(f.top) } else { f.base }, domain));
            }
            false
        });
        let frame = bounded.ok_or(errno::ENOENT)?;
        if frame.caller == 0 {
            ended.callee = self.unbegun(machine, tid, frame, caller)?;
            return Ok(ended);
        }
        for (place, domain) in places {
            if machine.thread_word(tid, place) != map::GATE_UNWIND {
                machine.set_thread_word(tid, place, map::GATE_UNWIND);
                ended.told.extend(self.note(domain, tid));
            }
        }
        ended.callee = frame.callee;
        Ok(ended)
    }

    /// Notes the thread for a domain that wants to know; the index of V on its semaphore.
    fn note(&mut self, domain: u16, tid: u16) -> Option<u16> {
        let watch = &mut self.domains[usize::from(domain)].watch;
        if watch.index == 0 {
            return None;
        }
        if watch.threads.len() >= NOTES {
            watch.threads.remove(0);
        }
        watch.threads.push(tid);
        Some(watch.index + 1)
    }

    /// The domain is told through this semaphore when threads are unwound in it; without one, no longer.
    pub fn watch(
        &mut self,
        machine: &mut impl Machine,
        asid: u64,
        semaphore: Option<u16>,
    ) -> Result<(), i64> {
        self.domain(asid)?;
        let own = self.own()?;
        let index = match semaphore {
            Some(id) => self.semaphore(machine, own.into(), id)?,
            None => 0,
        };
        let watch =
            core::mem::replace(&mut self.domains[asid as usize].watch, Watch { index, ..Watch::default() });
        if watch.index != 0 {
            self.vacate(machine, own, watch.index.into(), 2);
        }
        Ok(())
    }

    /// The next thread that has been unwound in the domain.
    pub fn unwound(&mut self, asid: u64) -> Result<u16, i64> {
        let threads = &mut self.domain(asid)?.watch.threads;
        if threads.is_empty() { Err(errno::ENOENT) } else { Ok(threads.remove(0)) }
    }

    fn of_image(&self, asid: u16) -> bool {
        self.domains.get(usize::from(asid)).is_none_or(|d| d.image)
    }

    /// The scheduler, of now or before: where threads wait.
    fn waits(&self, asid: u16) -> bool {
        self.domains.get(usize::from(asid)).is_some_and(|d| d.view.exclusive)
    }

    /// The domain in which a trap has found the thread; `top`: offset of the frame's top word.
    fn trapped(&self, machine: &impl Machine, tid: u16, top: u64) -> u16 {
        (machine.thread_word(tid, word(top, thread::TRAP_SATP)) >> 44) as u16
    }

    /// The call waits for a stack of its callee, and would be made again: it is answered here. One to a server of the image is not: its stacks
    /// come free, and it may be the one by which the caller says that it is back.
    fn unbegun(
        &self,
        machine: &mut impl Machine,
        tid: u16,
        frame: frames::Frame,
        caller: u16,
    ) -> Result<u16, i64> {
        let register = |x: usize| word(frame.top, thread::trap_word(x));
        let waits =
            self.interfaces.iter().any(|i| i.asid == frame.callee && i.name == "scheduler.stack_wait");
        let index = machine.thread_word(tid, register(T0)) as usize % map::TABLE_ENTRIES;
        let goal = self.domains[usize::from(caller)].slots.get(index).map(|slot| slot.goal);
        let (true, Some(Goal::Interface(interface))) = (waits, goal) else { return Err(errno::ENOENT) };
        let callee = self.interfaces.get(usize::from(interface)).map_or(0, |i| i.asid);
        if self.of_image(callee) {
            return Err(errno::ENOENT);
        }
        machine.set_thread_word(tid, register(A0), u64::MAX);
        machine.set_thread_word(tid, register(A1), status::TIMEOUT | u64::from(callee) << 16);
        let back = machine.thread_word(tid, register(RA));
        machine.set_thread_word(tid, pc(frame.top), back);
        Ok(callee)
    }
}

const RA: usize = 1;
const T0: usize = 5;
const A0: usize = 10;
const A1: usize = 11;

/// Offset of a word of a trap's frame whose top word is at `top`.
const fn word(top: u64, word: usize) -> u64 {
    (top + 8).wrapping_sub((thread::TRAP_WORDS - word) as u64 * 8)
}

/// Of the program counter of a trap.
const fn pc(top: u64) -> u64 {
    word(top, thread::TRAP_SEPC)
}
