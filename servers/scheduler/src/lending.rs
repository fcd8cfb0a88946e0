//! Lending: whoever holds a lock gets to run while somebody waits for it.
//!
//! **Problem.** A lock of a server is held for a few microseconds by whichever thread is there, however
//! little urgent, and nobody notes which one it is: that would cost each lock a call. A thread of priority 1
//! that is interrupted there, by one of priority 8 which then computes for ever, would keep the lock for
//! ever, and everybody who wants it waiting, the shell and the process server included. So would as many
//! threads as a server has stacks.
//!
//! **Strategy** (priority inheritance, Sha, Rajkumar and Lehoczky 1990, but for a holder whom nobody knows).
//! While a thread waits on the semaphore of a lock, and none that is ready is more urgent, all ready threads
//! take turns at its level, each for [`LENT`] ticks, level after level: the holder is among them, and is done
//! long before its turn ends. When nobody waits for a lock any longer the turn is over: whoever has got it
//! runs at once. Each [`LOOK`] one thread has such a turn for those who wait for a stack. Locks are those of
//! the image's components alone: what a program does to its own threads is its affair.
//!
//! **Bound:** with n ready threads a holder begins to run within n turns. One entry moves two threads at
//! most. **Invariants:**
//! * who begins to wait gives back at once what it is lent: it stands in each line at its own level;
//! * at most one thread is lent a level, its [`proper_level`](Scheduler::proper_level) until it waits or the
//!   turn ends; what it runs is charged to it;
//! * who waits for a lock counts in `attention`, and so does the turn: no quick method sees a level that is
//!   lent;
//! * the least urgent level of all, where the idle thread is, is lent nothing: that has a lock only while it
//!   has another level.

use crate::*;

/// Ticks of a turn: 100 microseconds, some times what a server does with a lock.
pub const LENT: u64 = TIME_HZ / 10_000;
/// The idle thread's.
const IDLE: u8 = PRIORITIES as u8 - 1;

/// What a turn is for.
const LOCK: u8 = 1;
const STACK: u8 = 2;

/// All zero while nobody waits for a lock.
#[repr(C)]
pub(crate) struct Lending {
    /// Threads that wait for locks.
    waiters: u16,
    /// The most urgent level of which one has waited since there was none.
    level: u8,
    /// A turn is under way: what it is for ([`LOCK`], [`STACK`]; 0: there is none), whose it is, at which
    /// level, until when.
    lent: u8,
    to: u8,
    at: u8,
    /// The levels from which the last one came that was for a lock, and for a stack.
    last: [u8; 2],
    until: u64,
}

impl Lending {
    pub(crate) const fn zero() -> Self {
        Lending { waiters: 0, level: 0, lent: 0, to: 0, at: 0, last: [0; 2], until: 0 }
    }

    /// The level that the thread is lent, if any.
    pub(crate) fn level_of(&self, t: u8) -> Option<u8> {
        (self.lent != 0 && self.to == t).then_some(self.at)
    }

    /// A turn is under way, or somebody waits for one.
    pub(crate) fn any(&self) -> bool {
        self.lent != 0 || self.waiters != 0
    }

    /// When to see to it next, while a thread of the level `top` runs: when the turn ends, or now, if that
    /// was put off. A thread that is more urgent than all this is not disturbed.
    pub(crate) fn due(&self, top: u8, put_off: bool) -> u64 {
        match self.lent {
            _ if !self.any() || top < if self.lent != 0 { self.at } else { self.level } => NEVER,
            _ if put_off => 0,
            0 => NEVER,
            _ => self.until,
        }
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// `t` waits for a lock.
    pub(crate) fn lock_wanted(&mut self, t: u8) {
        let level = self.level[t as usize];
        let lending = &mut self.lending;
        lending.level = if lending.waiters == 0 { level } else { lending.level.min(level) };
        lending.waiters += 1;
        self.attention += 1;
        self.stacks.has_locks(self.caller[t as usize], true);
    }

    /// A thread waits for one no longer.
    pub(crate) fn lock_had(&mut self) {
        self.lending.waiters -= 1;
        self.attention -= 1;
    }

    /// Ends the turn that is over, and begins the next if somebody waits for a lock.
    pub(crate) fn lend(&mut self, words: &Words, now: u64) {
        let Lending { lent, waiters, until, to, level, .. } = self.lending;
        let over = now >= until || self.state(to) != State::Ready;
        if lent != 0 && over || lent == LOCK && waiters == 0 {
            self.take_back(words, over);
        }
        if waiters > 0 && !self.long {
            self.lend_at(level, LOCK, now);
        }
    }

    /// Begins a turn for whoever waits for a stack, unless one is under way that is as urgent. Whether it
    /// has.
    pub(crate) fn lend_for_stack(&mut self, words: &Words, level: u8, now: u64) -> bool {
        if self.lending.lent != 0 && self.lending.at > level {
            self.take_back(words, true);
        }
        self.long || self.lend_at(level, STACK, now)
    }

    /// Begins a turn at this level, if none is under way and it makes a difference. Whether it has.
    fn lend_at(&mut self, level: u8, what: u8, now: u64) -> bool {
        let candidates = self.ready & !(1 << IDLE);
        let more_urgent = candidates & !(u32::MAX << (level % 32));
        if self.lending.lent != 0 || candidates == 0 || more_urgent != 0 {
            return false;
        }
        let behind = candidates & (!1 << (self.lending.last[usize::from(what - LOCK)] % 32));
        let from = if behind != 0 { behind } else { candidates }.trailing_zeros() as u8;
        let queue = *self.queue(from);
        if candidates.is_power_of_two() && queue.is_single() {
            return false;
        }
        let t = queue.head;
        self.lending =
            Lending { lent: what, to: t, at: level, until: now.wrapping_add(LENT), ..self.lending };
        self.lending.last[usize::from(what - LOCK)] = from;
        self.attention += 1;
        self.leave_ready(t, from);
        self.level[t as usize] = level;
        self.queue_ready(t, true);
        true
    }

    /// Ends the turn: the thread goes behind its peers if its time is over.
    fn take_back(&mut self, words: &Words, over: bool) {
        self.lending.lent = 0;
        self.attention -= 1;
        let t = self.lending.to;
        let level = self.proper_level(t);
        if self.state(t) == State::Ready {
            self.leave_ready(t, self.level[t as usize]);
            self.level[t as usize] = level;
            self.queue_ready(t, !over);
        } else if self.level[t as usize] != level {
            self.relevel(words, t, level);
        }
    }
}
