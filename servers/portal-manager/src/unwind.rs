//! Ending a call whose time is over.
//!
//! **Problem.** The thread is somewhere above the bounded call: it computes, sleeps, waits, in a domain that
//! may not want to come back. Stacks, windows and registers of every leg on its way must be given back as if
//! the leg had returned.
//!
//! **Strategy.** Nothing is taken apart here: each leg is undone by its own return code. The places at which
//! domains above the call would go on, return addresses of calls and program counters of traps, are changed
//! to the gate's second stub, which returns from the domain with status `TIMEOUT`. The stub is open to
//! everybody, so each leg that shall end is marked as late in its own frame, which the portal behind the stub
//! looks at. So the thread, once it runs, falls from leg to leg. What the image's servers do on the way they
//! finish: nobody finds them half-way, and no lock of theirs stays taken.
//!
//! **Invariants:**
//! * only the bounded call ends: its frame stands right above the place that the clock has noted, was pushed
//!   by the domain that asked, and leads back there;
//! * a leg ends with `TIMEOUT` only if it is marked, and the mark is in the frame's top word, so it is gone
//!   with the frame, however that goes: no later call in its place has it, nor one below or above;
//! * the thread does not run meanwhile: whoever asks is more urgent than any thread with a bound, and nothing
//!   here waits;
//! * a domain of the image is not unwound; its call that has yet to begin, for want of a stack of a program,
//!   is answered: this thread may hold all of these stacks;
//! * a program that is in a section which it has marked (`thread::SECTION`: it holds a lock) is given a while
//!   to leave it, as long as whoever asks is patient;
//! * nor is a controller that passes a call on: its leg is its child's, and the call that it makes is the one
//!   that ends. While a controller of whoever asked is at something of its own, nothing ends.

use crate::Machine;
use crate::frames::{self, Current, Frame};
use crate::manager::{Goal, Manager};
use alloc::vec::Vec;
use pebble_abi::control::PASSED_ON;
use pebble_abi::errno::{self, Errno};
use pebble_abi::fault::Cause;
use pebble_abi::words::Asid;
use pebble_abi::{map, status, thread};
use pebble_arch::Arch;

/// What has become of a late call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Who had the call.
    pub callee: u16,
    /// No server of the image waits: the wait may be cut short whatever it is for.
    pub cut: bool,
    /// Indices of V, in the portal manager's own table, by which domains that are unwound are told: once for
    /// each leg.
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

/// A frame, and whose it is: of a trap, the domain that was interrupted.
#[derive(Clone, Copy)]
pub(crate) struct Leg {
    frame: Frame,
    pub domain: u16,
    /// The portal that it called or, of a trap, was about to call.
    index: u16,
}

impl Leg {
    /// Of a call.
    pub fn of(frame: Frame) -> Leg {
        Leg { frame, domain: frame.caller, index: frame.index }
    }
}

impl<A: Arch> Manager<A> {
    /// For whom the call is that the thread's second frame from the top made, and where it was made: the
    /// offset of the invocation stack's top word, domain << 16. Not a controller that passes it on; that one
    /// does is in the bit [`PASSED_ON`].
    pub fn call_site(&self, machine: &impl Machine, current: Current) -> Result<u64, Errno> {
        let (mut site, mut asked, mut passed) = (None::<Leg>, false, 0);
        frames::any::<A>(machine, current.tid, current, self.code.thread_end, |frame| {
            let goes_on = site.is_none_or(|above| self.passes(frame, above));
            if goes_on && core::mem::replace(&mut asked, true) {
                passed = if site.is_some() { PASSED_ON } else { 0 };
                site = Some(Leg::of(frame));
            }
            !goes_on
        });
        let Leg { frame, domain, .. } = site.ok_or(errno::ESRCH)?;
        Ok((frame.base - 8) | u64::from(domain) << 16 | passed)
    }

    /// `above` is what a controller does for its child, which has come in by `below`.
    fn serves(&self, below: Frame, above: Leg) -> bool {
        above.domain == below.callee && self.controller(below.caller) == Some(below.callee)
    }

    /// And is the call that the child has made.
    pub(crate) fn passes(&self, below: Frame, above: Leg) -> bool {
        let same = above.index == below.index || self.on_behalf(above.domain, above.index);
        same && self.serves(below, above)
    }

    /// Whether one domain is controlled by another, at whatever depth.
    pub(crate) fn is_below(&self, asid: u16, controller: u16) -> bool {
        let mut above = Some(asid);
        while let Some(asid) = above.filter(|asid| *asid != controller) {
            above = self.controller(asid);
        }
        above.is_some()
    }

    /// The legs of a thread above `level`, the topmost first; the last is that of the call made from there.
    fn legs(&self, machine: &impl Machine, current: Current, tid: u16, level: u64) -> Vec<Leg> {
        let mut legs = Vec::new();
        frames::any::<A>(machine, tid, current, self.code.thread_end, |frame| {
            let mut leg = Leg::of(frame);
            if frame.caller == 0 {
                leg.domain = self.trapped(machine, tid, frame.top);
                leg.index = self.about_to_call(machine, tid, frame).unwrap_or_default();
            }
            legs.push(leg);
            frame.base <= level + 8
        });
        legs
    }

    /// Ends what `tid` does above `level`, the offset of an invocation stack's top word, in a call that
    /// `caller` has made from there. -ENOENT: there is no such call, or a controller is not done with it.
    /// -EAGAIN, to who is `patient`: a program is in a section that it marks.
    pub fn unwind(
        &mut self,
        machine: &mut impl Machine,
        current: Current,
        tid: u16,
        level: u64,
        caller: u16,
        patient: bool,
    ) -> Result<Ended, Errno> {
        if tid == current.tid || usize::from(tid) >= map::MAX_THREADS {
            return Err(errno::EINVAL);
        }
        let legs = self.legs(machine, current, tid, level);
        let made = legs.last().filter(|leg| leg.frame.base == level + 8 && leg.domain == caller);
        made.ok_or(errno::ENOENT)?;
        // From each leg to the one above it.
        let steps = |n: &usize| (legs[*n].frame, legs[n - 1]);
        let bounded = (1..legs.len()).rev().find(|n| {
            let (below, above) = steps(n);
            !self.passes(below, above)
        });
        let bounded = bounded.unwrap_or(0);
        let Leg { frame, domain, .. } = legs[bounded];
        let waiting = (1..=bounded).any(|n| {
            let (below, above) = steps(&n);
            self.serves(below, above) && !self.passes(below, above) && self.is_below(caller, above.domain)
        });
        if waiting {
            return Err(errno::ENOENT);
        }
        let mut ended = Ended { callee: frame.callee, ..Ended::default() };
        ended.cut = self.waits(legs[0].frame.callee) && (bounded == 0 || !self.of_image(legs[0].domain));
        if frame.caller == 0 {
            ended.callee = self.unbegun(machine, tid, frame, domain)?;
            return Ok(ended);
        }
        // Whether the domain above each leg is unwound. A controller that passes a call on goes on, but not
        // with registers that one of its own has left half-way.
        let mut ends = alloc::vec![false; bounded + 1];
        for n in 1..=bounded {
            let (below, above) = steps(&n);
            let upset = ends[n - 1] && !self.keeps_registers(above.frame);
            ends[n] = !self.of_image(above.domain) && (upset || !self.passes(below, above));
        }
        let holds = |n: usize| ends[n] && self.in_section(machine, tid, legs[n - 1].frame, n == 1);
        if patient && (1..=bounded).any(holds) {
            return Err(errno::EAGAIN);
        }
        for n in (1..=bounded).rev() {
            let above = legs[n - 1];
            let trapped = above.frame.caller == 0;
            if !ends[n] {
                // It goes on; but no stack comes free while this thread holds them all. -ENOENT: it does not
                // wait for one.
                if trapped {
                    let _ = self.unbegun(machine, tid, above.frame, above.domain);
                }
                continue;
            }
            let place =
                if trapped { A::LAYOUT.offset(above.frame.top, A::LAYOUT.pc) } else { above.frame.base };
            machine.set_thread_word(tid, place, map::GATE_UNWIND);
            self.detours.retain(|d| !d.is(tid, above.frame.base));
            if frames::make_late::<A>(machine, tid, legs[n].frame) {
                ended.told.extend(self.note(above.domain, tid));
            }
        }
        Ok(ended)
    }

    /// Where the thread pointer is in the frame of a call that keeps the preserved registers: behind return
    /// address and stack pointer the last of them.
    const THREAD_OF_CALL: u64 = (1 + A::LAYOUT.preserved as u64) * 8;

    /// The frame of this call holds the caller's preserved registers (a portal with `p` or `f`).
    fn keeps_registers(&self, frame: Frame) -> bool {
        let float = self.domains.get(usize::from(frame.caller)).is_some_and(|d| d.view.float);
        let more = if float { A::LAYOUT.float_preserved as u64 * 8 } else { 0 };
        frame.top - frame.base > Self::THREAD_OF_CALL + more
    }

    /// The domain that has left by this frame (`last`: the topmost) has said that it holds something.
    fn in_section(&self, machine: &impl Machine, tid: u16, frame: Frame, last: bool) -> bool {
        let place = if frame.caller == 0 {
            A::LAYOUT.offset(frame.top, A::LAYOUT.thread)
        } else if self.keeps_registers(frame) {
            frame.base + Self::THREAD_OF_CALL
        } else if last && self.waits(frame.callee) {
            thread::SAVED_REGS + (A::LAYOUT.preserved as u64 - 1) * 8
        } else {
            return false;
        };
        machine.thread_word(tid, place) & thread::SECTION != 0
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
        asid: Asid,
        semaphore: Option<u16>,
    ) -> Result<(), Errno> {
        let before = self.domain(asid)?.watch.index;
        let own = if before != 0 || semaphore.is_some() { self.own()? } else { 0 };
        let index = match semaphore {
            Some(id) => self.for_itself(|m| m.semaphore(machine, own.into(), id))?,
            None => 0,
        };
        self.domains[usize::from(asid.number())].watch = Watch { index, ..Watch::default() };
        if before != 0 {
            self.vacate(machine, own, before.into(), 2);
        }
        Ok(())
    }

    /// The next thread that has been unwound in the domain.
    pub fn unwound(&mut self, asid: Asid) -> Result<u16, Errno> {
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
        A::asid(machine.thread_word(tid, A::LAYOUT.offset(top, A::LAYOUT.space)))
    }

    /// The index by which a thread that waits for a stack of its callee will call; none: it waits for none.
    /// Who waits for a stack of another trap's handler, of a page fault's say, is at any instruction of its
    /// own, and will not call.
    fn about_to_call(&self, machine: &impl Machine, tid: u16, frame: Frame) -> Option<u16> {
        let waits =
            self.interfaces.iter().any(|i| i.asid == frame.callee && i.name == "scheduler.stack_wait");
        let word = |word| machine.thread_word(tid, A::LAYOUT.offset(frame.top, word));
        let index = word(A::LAYOUT.index);
        let calls = A::cause(word(A::LAYOUT.desc), 0, 0).0 == Cause::Call;
        (waits && calls).then_some(index as u16 % map::TABLE_ENTRIES as u16)
    }

    /// The call waits for a stack of its callee, and would be made again: it is answered here. One to a
    /// server of the image is not: its stacks come free, and it may be the one by which the caller says that
    /// it is back.
    fn unbegun(&self, machine: &mut impl Machine, tid: u16, frame: Frame, caller: u16) -> Result<u16, Errno> {
        let word = |word: usize| A::LAYOUT.offset(frame.top, word);
        let index = self.about_to_call(machine, tid, frame).ok_or(errno::ENOENT)?;
        let goal = self.domains[usize::from(caller)].slots.get(usize::from(index)).map(|slot| slot.goal);
        let Some(Goal::Interface(interface)) = goal else { return Err(errno::ENOENT) };
        let callee = self.interfaces.get(usize::from(interface)).map_or(0, |i| i.asid);
        if self.of_image(callee) {
            return Err(errno::ENOENT);
        }
        machine.set_thread_word(tid, word(A::LAYOUT.value), u64::MAX);
        machine.set_thread_word(tid, word(A::LAYOUT.status), status::TIMEOUT | u64::from(callee) << 16);
        let back = machine.thread_word(tid, word(A::LAYOUT.link));
        machine.set_thread_word(tid, word(A::LAYOUT.pc), back);
        Ok(callee)
    }
}
