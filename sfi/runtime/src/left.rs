//! Calls out of domains that never come back: the function of the process that was called has left by
//! `longjmp`.
//!
//! Problem: on the domain's stacks such a call looks like one that somebody waits for, so that the instance
//! could not be reset, its thread would have a call to end for ever, and one less that it may make. Strategy:
//! the frame of each call into a domain says where the process's stack was. That grows down, so what began
//! below the place where its thread is now has been left; and what began in the same place, and is not part
//! of the call that runs there.
//!
//! Invariants: a thread judges its own calls, made on its own stack, when it is on that itself; those of
//! coroutines and signal stacks are never taken for left. Nor is what runs. The signal handler writes only to
//! stacks on which something has not come back, which are nobody else's; they are given up under the lock of
//! their instance's.

use crate::deadline;
use crate::ending;
use crate::instance::Out;
use crate::record::Mark;
use crate::thread::{self, Thread};
use pebble_portal::fault::record;

/// In the link from a call out of a domain to the call in from which it was made, which is even: it has been
/// left, and counts no more.
const LEFT: u64 = 1;

/// A call out of a domain that has not come back: where it has published the stack pointer, and its link.
#[derive(Clone, Copy)]
pub struct Call {
    at: u64,
    link: u64,
}

impl Call {
    fn is_left(&self) -> bool {
        self.link & LEFT != 0
    }

    /// Where the call in from which it was made entered.
    fn entered(&self) -> u64 {
        self.link & !LEFT
    }

    /// Where the process's stack was then.
    fn began(&self, mark: Mark) -> u64 {
        mark.peek(self.entered() - 8).unwrap_or(0)
    }
}

/// Those on a stack, from the last.
fn calls_out(mark: Mark) -> impl Iterator<Item = Call> {
    let call = move |at: u64| {
        let more = at != mark.get(record::BOTTOM);
        more.then(|| mark.peek(at + 8)).flatten().map(|link| Call { at, link })
    };
    std::iter::successors(call(mark.get(record::TOP)), move |last| call(last.entered()))
}

/// Those that may come back.
fn awaited(mark: Mark) -> impl Iterator<Item = Call> {
    calls_out(mark).filter(|call| !call.is_left())
}

/// Where the process's stack was when the calls began that wait on this stack for others, out of the domain;
/// from the last. Called in the signal handler too.
pub fn waiting(mark: Mark) -> impl Iterator<Item = u64> {
    awaited(mark).map(move |call| call.began(mark))
}

/// A call waits on this stack, or runs there and has called nobody. Called in the signal handler too.
pub fn is_used(mark: Mark) -> bool {
    waiting(mark).next().is_some() || mark.get(record::TOP) == mark.get(record::BOTTOM) && mark.busy()
}

/// Where the process's stack was when the call began that runs on this stack.
pub fn place(mark: Mark) -> u64 {
    mark.peek(mark.get(record::TOP) - 8).unwrap_or(0)
}

/// Counts no more what the thread has left, which is on its own stack at the place `at` or deeper; there the
/// call runs that is on the stack `running`. How much that was. Called in the signal handler too.
pub fn forget(thread: &Thread, at: u64, running: Option<Mark>) -> u32 {
    if !thread.stack.contains(&at) {
        return 0;
    }
    let here = |mark: Mark| awaited(mark).filter(move |call| call.began(mark) == at);
    // Of those that began here the last on each stack wait for one another; the innermost for nobody.
    let waiting = running.map_or(0, |mark| mark.calls().count() - 1);
    let more = thread.stacks().map(|mark| here(mark).count()).sum::<usize>() > waiting;
    let mut count = 0;
    for mark in thread.stacks() {
        let leave = |call: Call| mark.poke(call.at + 8, call.link | LEFT);
        let deeper = awaited(mark).filter(|call| (thread.stack.start..at).contains(&call.began(mark)));
        count += deeper.map(leave).count();
        if let Some(innermost) = running.filter(|_| more) {
            let waiting = innermost.calls().skip(1).filter(|caller| *caller == mark).count();
            count += here(mark).skip(waiting).map(leave).count();
        }
        shorten(mark);
    }
    thread::words().forget_nested(count as u32);
    count as u32
}

/// Many that have been left, one after the other, are passed over at once.
fn shorten(mark: Mark) {
    let mut first: Option<Call> = None;
    for call in calls_out(mark) {
        match first.filter(|_| call.is_left()) {
            Some(first) => mark.poke(first.at + 8, call.link),
            None => first = Some(call).filter(Call::is_left),
        }
    }
}

/// In the signal handler: whether the thread of this stack may make one more call out of a domain after all.
pub fn makes_room(mark: Mark) -> bool {
    // SAFETY: it is this thread's.
    forget(unsafe { thread::of(mark) }, place(mark), Some(mark)) > 0
}

/// Gives up stacks of an instance, of which these are all, on which the thread has left every call; and its
/// deadlines of such calls. The thread is outside of domains, in a function of the process whose frame begins
/// at `at` or above.
pub fn give_up(thread: &Thread, at: u64, out: &Out) {
    forget(thread, at, None);
    let own = |mark: &Mark| mark.get(record::THREAD) == std::ptr::from_ref(thread) as u64;
    for mark in out.stacks.iter().map(|given| given.mark).filter(own) {
        let bottom = mark.get(record::BOTTOM);
        if mark.get(record::TOP) == bottom || waiting(mark).next().is_some() {
            continue;
        }
        mark.set(record::TOP, bottom);
        mark.set(record::DATA, mark.get(record::DATA_BOTTOM));
        if let Some((resume, _)) = mark.frame(bottom) {
            mark.poke(resume - 8, 0);
        }
        let home = Mark(mark.get(record::HOME));
        if mark != home {
            mark.set(record::QUEUE, home.get(record::QUEUE));
            home.set(record::QUEUE, mark.0);
        }
    }
    deadline::forget(|number, began| number == thread.number && (thread.stack.start..at).contains(&began));
    ending::come_back(thread);
}
