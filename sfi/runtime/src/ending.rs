//! Ending a call wherever it is: in the domain itself, in one that it has called, directly or through a function of the process, or in a system call.
//!
//! Problem: a deadline or a cancellation ends a call by taking the rights of the domain's code, which is no matter to a thread that is in another
//! domain meanwhile. That one may be shared with others, so it must neither be ended without need nor by mistake; and where a thread is
//! only the thread itself knows for certain. Strategy: the clock looks where the threads with such calls are, and *asks* their domain: its code cannot be
//! executed for a moment. Who comes to it is in the signal handler, and sees on its own stacks whether it is part of a call that is to end. If it
//! is, the domains that have been at it longest are poisoned, at first one, so that each leg of the call comes back as after a fault; everybody else tries again.
//!
//! A domain that calls poisoned ones without end is never met in its own code: then the thread is asked, at its next fault,
//! and no longer than until the call has come back or its instance is reset.
//!
//! Invariants: nobody is poisoned but by a thread in the middle of its part, below a call that is to end, and not before that thread has had [`GRACE`] of
//! processor time since (or [`NEXT`] since the last one was poisoned): a domain that answers sooner is none the wiser. Who waits is asked no more than
//! once at a time, and let go when the thread has gone on.

use crate::fault::Cause;
use crate::instance::Shared;
use crate::record::Mark;
use crate::slots::{self, Slots};
use crate::thread::{self, Thread, Words};
use pebble_portal::fault::record;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a domain that has been called has to come back by itself, and the further ones below that: one, two, four, ...
const GRACE: Duration = Duration::from_millis(10);
const NEXT: Duration = Duration::from_millis(1);

/// Whether the system call or the wait that this thread does for an instance is over, and its answer nobody's.
pub fn over(shared: &Shared) -> bool {
    shared.poisoned().is_some() || thread::with(|thread| thread.ended().is_some()).unwrap_or(false)
}

/// A thread with a call that is to end.
struct Hunted {
    words: *const Words,
    /// When its domain may be asked, by its own clock.
    due: Duration,
}

// SAFETY: the pointer is compared, and followed only as long as the thread has a stack in the instance whose stacks are held.
unsafe impl Send for Hunted {}

/// What is done about the calls in one instance that are to end.
#[derive(Default)]
pub struct Hunt {
    asked: Vec<Weak<Shared>>,
    threads: Vec<Hunted>,
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
            let (words, clock, asked) = unsafe {
                let thread = mark.get(record::THREAD) as *const Thread;
                (mark.get(record::WORDS) as *const Words, (*thread).clock, &(*thread).asked)
            };
            // SAFETY: as above.
            let Some(domain) = domain(slots, unsafe { &*words }) else { continue };
            seen.elsewhere = true;
            let place = self.threads.iter().position(|hunted| hunted.words == words);
            let place = place.unwrap_or_else(|| {
                self.threads.push(Hunted { words, due: clock.now() + GRACE });
                self.threads.len() - 1
            });
            let (now, hunted) = (clock.now(), &mut self.threads[place]);
            there.push(std::ptr::from_ref(domain));
            if now < hunted.due {
                continue;
            }
            if domain.poisoned().is_some() {
                // It faults there; perhaps whoever has called it does so again and again.
                asked.store(true, Ordering::SeqCst);
                hunted.due = now + NEXT;
            } else if domain.ask() {
                hunted.due = now + NEXT;
                self.asked.push(domain.me.clone());
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

/// In the signal handler: the thread, whose innermost call is on this stack, has found the code of its instance without the right to be executed, but not
/// poisoned.
pub fn answer(instance: &Shared, mark: Mark) {
    if poison(mark) {
        instance.let_go();
    } else if instance.is_asked() {
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
        // SAFETY: waits a moment; it may be called in a handler.
        unsafe { libc::nanosleep(&moment, std::ptr::null_mut()) };
    }
}

/// In the signal handler, at a fault on this stack: who calls poisoned domains without end is hardly ever met in its own code.
pub fn faulted(mark: Mark) {
    // SAFETY: the record names the block of the thread that owns the stack, which is this one.
    if unsafe { &*(mark.get(record::THREAD) as *const Thread) }.asked.swap(false, Ordering::SeqCst) {
        poison(mark);
    }
}

/// No call on this stack is to end any more: its thread is not asked, so that a later call that is to end has all its time. For the thread itself, in
/// the signal handler, or who has the lock of the stacks.
pub fn settled(mark: Mark) {
    // SAFETY: the record names the block of the thread that owns the stack, which cannot end meanwhile.
    unsafe { &*(mark.get(record::THREAD) as *const Thread) }.asked.store(false, Ordering::SeqCst);
}

/// Poisons the domains that have been at it longest, twice as many as before, so that no length of the chain is a long time. Whether there was one.
fn poison(mark: Mark) -> bool {
    let Some(first) = to_poison(mark) else { return false };
    first.domain.poison(first.cause);
    for _ in 0..first.poisoned {
        let Some(next) = to_poison(mark) else { break };
        next.domain.poison(next.cause);
    }
    true
}

/// The domain that has been in the middle of its part for the longest time, of a call that is to end.
struct Next {
    domain: &'static Shared,
    cause: Cause,
    /// So many calls are in domains that have been poisoned, beside the one whose time is over.
    poisoned: usize,
}

/// If some call of this thread's is to end.
fn to_poison(mark: Mark) -> Option<Next> {
    // SAFETY: the record names the block of the thread that owns the stack, which is this one, and in a domain: nothing changes the block.
    let cause = unsafe { &*(mark.get(record::THREAD) as *const Thread) }.ended()?;
    let (mut within, mut outermost, mut poisoned) = (None, None, 0);
    let mut next = Some((mark, mark.get(record::TOP)));
    while let Some((mark, top)) = next {
        let instance = mark.instance();
        match instance.ended() {
            Some(_) => within = outermost,
            None if instance.poisoned().is_none() => outermost = Some(instance),
            None => poisoned += 1,
        }
        next = mark.caller(top).map(|(caller, _, top)| (caller, top));
    }
    // If none of these calls is to end, one further out is, below a function of the process.
    within.or(outermost).map(|domain| Next { domain, cause, poisoned })
}
