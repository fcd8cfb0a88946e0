//! Ending a call wherever it is: in the domain itself, in one that it has called, directly or through a
//! function of the process, or in a system call.
//!
//! Problem: a deadline or a cancellation ends a call by taking the rights of the domain's code, which is no
//! matter to a thread that is in another domain meanwhile. That one may be shared with others, so it must
//! neither be ended without need nor by mistake; and where a thread is only the thread itself knows for
//! certain. Strategy: the clock looks where the threads with such calls are, and *asks* their domain: its
//! code cannot be executed for a moment. Who comes to it is in the signal handler, and sees on its own stacks
//! whether it is part of a call that is to end. If it is, the domains that have been at it longest are
//! poisoned, at first one, so that each leg of the call comes back as after a fault; everybody else tries
//! again.
//!
//! A domain that calls poisoned ones without end is hardly ever met in its own code, but it is in the handler
//! all the time: there the thread sees by its own clock whether its callees have had their time.
//!
//! Invariants: nobody is poisoned but by a thread in the middle of its part, below a call that is to end, and
//! not before that thread has had [`GRACE`] of processor time since (or [`NEXT`] since the last one was
//! poisoned): a domain that answers sooner is none the wiser. Who waits is let go when the thread has gone
//! on. A look at a chain of calls takes as many steps as there are calls between domains,
//! [`pebble_portal::fault::MOST_NESTED`] at most.

use crate::fault::Cause;
use crate::instance::Shared;
use crate::left;
use crate::record::Mark;
use crate::slots::{self, Slots};
use crate::thread::{self, Clock, Thread, Words};
use pebble_portal::fault::record;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a domain that has been called has to come back by itself, and the further ones below that: sixteen
/// times as many each time.
const GRACE: Duration = Duration::from_millis(10);
const NEXT: Duration = Duration::from_millis(1);
const TIMES: usize = 16;

/// Whether the system call or the wait that this thread does for an instance is over, and its answer
/// nobody's.
pub fn over(shared: &Shared) -> bool {
    shared.poisoned().is_some() || thread::with(|thread| thread.ended().is_some()).unwrap_or(false)
}

/// When the domains that a thread is in may be poisoned for the sake of its calls that are to end, by its own
/// clock, in nanoseconds; 0 if there are none.
#[derive(Default)]
pub struct Due {
    time: AtomicU64,
    /// When it last looked in vain, and a moment more.
    later: AtomicU64,
}

impl Due {
    /// Whether that time has come; it begins with the first question.
    fn has_come(&self, now: Duration) -> bool {
        let begun = self.time.compare_exchange(0, nanoseconds(now + GRACE), SeqCst, SeqCst);
        begun.is_err_and(|due| due <= nanoseconds(now))
    }

    /// The same, if anybody has asked before; who is not `asked` now does not look too often.
    fn has_long_come(&self, asked: bool) -> bool {
        let due = self.time.load(SeqCst);
        let due = if asked { due } else { due.max(self.later.load(SeqCst)) };
        due != 0 && due <= nanoseconds(Clock::OWN.now())
    }

    fn forget(&self) {
        self.later.store(0, SeqCst);
        self.time.store(0, SeqCst);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// What is done about the calls in one instance that are to end.
#[derive(Default)]
pub struct Hunt {
    asked: Vec<Weak<Shared>>,
}

/// What has come of a look.
pub struct Seen {
    /// Calls in the instance have not come back.
    pub outstanding: bool,
    /// Some of their threads are in other domains.
    pub elsewhere: bool,
    /// What was kept for the look. It may go with it, for which the caller must hold nothing.
    pub kept: Vec<Arc<Shared>>,
}

impl Hunt {
    /// Where the threads are whose calls in `ended` have not come back.
    pub fn look(&mut self, ended: &Shared) -> Seen {
        let mut seen = Seen { outstanding: true, elsewhere: true, kept: Vec::new() };
        let (Some(stacks), Some(slots)) = (ended.stacks_now(), slots::existing()) else { return seen };
        (seen.outstanding, seen.elsewhere) = (false, false);
        let pinned = slots::pin();
        let mut there = Vec::new();
        for mark in stacks.stacks.iter().map(|given| given.mark).filter(|mark| mark.busy()) {
            seen.outstanding = true;
            // SAFETY: the thread cannot end without the lock of the stacks, which is held.
            let (words, thread) = unsafe { (&*(mark.get(record::WORDS) as *const Words), thread::of(mark)) };
            let Some(domain) = domain(slots, words) else { continue };
            seen.elsewhere = true;
            let waits = |mark| left::waiting(mark).next().is_some();
            if !waits(mark) {
                continue;
            }
            let has_come = thread.due.has_come(thread.clock.now());
            if !Mark(mark.get(record::HOME)).family().any(waits) {
                // It has come back meanwhile, and has perhaps forgotten its time before that was asked.
                thread.due.forget();
            } else if has_come {
                there.push(std::ptr::from_ref(domain));
                if domain.poisoned().is_none() && !domain.is_asked() && domain.ask() {
                    self.asked.push(domain.me.clone());
                }
            }
        }
        drop(pinned);
        drop(stacks);
        self.asked.retain(|asked| {
            let Some(asked) = asked.upgrade() else { return false };
            let stays = there.contains(&Arc::as_ptr(&asked)) && asked.is_asked();
            if !stays {
                asked.let_go();
            }
            seen.kept.push(asked);
            stays
        });
        seen
    }

    /// Nobody is asked any more. What the caller is to drop when it holds nothing.
    pub fn give_up(&mut self) -> Vec<Arc<Shared>> {
        let asked: Vec<_> = self.asked.drain(..).filter_map(|asked| asked.upgrade()).collect();
        asked.iter().for_each(|asked| asked.let_go());
        asked
    }
}

/// The domain that a thread is in. For who has pinned instances.
fn domain<'a>(slots: &Slots, words: &Words) -> Option<&'a Shared> {
    let slot = slots.by_base(words.within()?.slot())?;
    // SAFETY: null, or an instance, which stays while it is pinned.
    unsafe { slots.instance(slot).as_ref() }
}

/// A call of this thread's has come back without a fault.
pub fn come_back(thread: &Thread) {
    if thread.ended().is_none() {
        thread.due.forget();
    }
}

/// In the signal handler: the thread, whose innermost call is on this stack, has found the code of its
/// instance without the right to be executed, but not poisoned.
pub fn answer(instance: &Shared, mark: Mark) {
    if poison(mark, true) {
        instance.let_go();
    } else if instance.is_asked() {
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
        // SAFETY: waits a moment; it may be called in a handler.
        unsafe { libc::nanosleep(&moment, std::ptr::null_mut()) };
    }
}

/// In the signal handler, at a fault on this stack.
pub fn faulted(mark: Mark) {
    poison(mark, false);
}

/// No call on this stack is to end any more, so that a later one that is has all its time. For the thread
/// itself, in the signal handler, or who has the lock of the stacks.
pub fn settled(mark: Mark) {
    // SAFETY: as this function demands.
    unsafe { thread::of(mark) }.due.forget();
}

/// In the signal handler, on the thread of this stack: if some call of its is to end, and those below have
/// had their time, the domains are poisoned that have been at it longest. Whether there was one.
fn poison(mark: Mark, asked: bool) -> bool {
    // SAFETY: it is this thread's.
    let due = &unsafe { thread::of(mark) }.due;
    if !due.has_long_come(asked) {
        return false;
    }
    let poisoned = poison_longest(mark);
    let next = nanoseconds(Clock::OWN.now() + NEXT);
    if poisoned { &due.time } else { &due.later }.store(next, SeqCst);
    poisoned
}

fn poison_longest(mark: Mark) -> bool {
    // SAFETY: it is this thread's.
    let (thread, place) = (unsafe { thread::of(mark) }, left::place(mark));
    left::forget(thread, place, Some(mark));
    let Some(cause) = thread.ended() else { return false };
    let waiting = poison_waiting(thread, place, cause);
    poison_chain(mark, cause) || waiting
}

/// Of the calls between domains from this one on, that wait for one another: each time sixteen times as many,
/// so that no length is a long time.
fn poison_chain(mark: Mark, cause: Cause) -> bool {
    let (mut calls, mut sound, mut poisoned) = (0, 0usize, 0);
    // If none of these calls is to end, one further out is, below a function of the process.
    let mut below = None;
    for instance in mark.calls().map(Mark::instance) {
        if instance.ended().is_some() {
            below = Some((calls, sound, poisoned));
        }
        *(if instance.poisoned().is_some() { &mut poisoned } else { &mut sound }) += 1;
        calls += 1;
    }
    let (calls, sound, poisoned) = below.unwrap_or((calls, sound, poisoned));
    let more = 1 + (TIMES - 1) * poisoned;
    let those = mark.calls().map(Mark::instance).take(calls);
    let those = those.filter(|i| i.ended().is_none() && i.poisoned().is_none());
    those.skip(sound.saturating_sub(more)).for_each(|instance| _ = instance.poison(cause));
    sound > 0
}

/// Those that wait for functions of the process, below the outermost call that is to end: all of them, since
/// they have been at it longer than whoever began at the place.
fn poison_waiting(thread: &Thread, place: u64, cause: Cause) -> bool {
    let ended = thread.stacks().filter(|mark| left::is_used(*mark) && mark.instance().ended().is_some());
    let outermost = ended
        .filter_map(|mark| left::waiting(mark).last())
        .filter(|began| thread.stack.contains(began))
        .max();
    let Some(outermost) = outermost else { return false };
    let mut any = false;
    for mark in thread.stacks() {
        let waits = left::waiting(mark).next().is_some_and(|began| place < began && began < outermost);
        if waits && mark.instance().poisoned().is_none() {
            any |= mark.instance().poison(cause);
        }
    }
    any
}
