//! Deadlines: the discipline of `Scheduler<true>`, and how one instance goes on where another stopped.
//!
//! **Strategy.** A thread that has declared a deadline is raised to level 0, whose ready queue is in order of
//! deadline; those of level 0 that have declared none come last there. All else is as without deadlines:
//! whoever is behind them shares the processor by priority, in turns. A deadline that passes before the
//! thread has declared another, or slept, is forgotten: the thread goes back among those of its priority. So
//! nobody keeps the others out by missing deadlines.
//!
//! **Invariants**, with deadlines: `level` is 0 for a thread with a deadline, else what its priority says
//! (`base`); the timer is due no later than the deadline of the running thread, if that one is at level 0 (a
//! thread may have declared it to an instance without deadlines, on its way out). Without them `level` is
//! `base`, and what threads declare is kept for a successor.

use crate::*;
use pebble_abi::errno::EAGAIN;

/// Threads that may have declared a deadline at one time, all together and those of one home: so many are in
/// order at level 0.
pub const MAX_HURRIED: usize = 24;
pub const MAX_HURRIED_AT_HOME: usize = 8;
/// Threads that one entry moves to where they belong.
const MOVES: usize = 2;

/// Who has declared a deadline, in no order.
#[repr(C)]
pub(crate) struct Hurried {
    threads: [u8; MAX_HURRIED],
    count: u8,
    /// The first so many have yet to get to the place that this discipline gives them.
    pub(crate) misplaced: u8,
}

impl Hurried {
    pub(crate) const fn zero() -> Self {
        Hurried { threads: [0; MAX_HURRIED], count: 0, misplaced: 0 }
    }

    fn all(&self) -> &[u8] {
        &self.threads[..usize::from(self.count).min(MAX_HURRIED)]
    }
}

/// The latest deadline, in ticks from now: ten seconds.
pub const MAX_DEADLINE: u64 = 10 * TIME_HZ;

impl Record {
    #[inline(always)]
    pub(crate) fn due(&self) -> u64 {
        if self.deadline == 0 { NEVER } else { self.deadline }
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    #[inline(always)]
    pub(crate) fn due(&self, t: u8) -> u64 {
        self.records[t as usize].due()
    }

    /// Where it belongs. Who waits is lent nothing, though its turn may not have been ended yet.
    pub(crate) fn proper_level(&self, t: u8) -> u8 {
        let level = self.own_level(t);
        let lent = self.lending.level_of(t).filter(|_| self.state(t) == State::Ready);
        lent.map_or(level, |lent| lent.min(level))
    }

    /// The same, whatever it is lent.
    pub(crate) fn own_level(&self, t: u8) -> u8 {
        let record = &self.records[t as usize];
        if EDF && record.deadline != 0 { 0 } else { record.base }
    }

    /// The calling thread wants to be done so many ticks from now; 0: it takes back what it has said. 0;
    /// `-EINVAL`: too far away; `-EAGAIN`: too many have declared one, of all ([`MAX_HURRIED`]) or of its
    /// home's.
    pub fn deadline(&mut self, words: &Words, ticks: u64, now: u64) -> Decision {
        let me = self.begin();
        if ticks > MAX_DEADLINE {
            return self.decide(me, -EINVAL, now);
        }
        if ticks == 0 {
            self.forget_deadline(me);
        } else if self.records[me as usize].deadline != 0 || self.hurry(me) {
            self.records[me as usize].deadline = now.wrapping_add(ticks);
        } else {
            return self.decide(me, -EAGAIN, now);
        }
        self.relevel(words, me, self.proper_level(me));
        self.decide(me, 0, now)
    }

    /// One more has a deadline, if that may be.
    fn hurry(&mut self, t: u8) -> bool {
        let home = |t: u8| self.records[t as usize].home;
        let of_home = self.hurried.all().iter().filter(|other| home(**other) == home(t)).count();
        let count = usize::from(self.hurried.count);
        let may = count < MAX_HURRIED && of_home < MAX_HURRIED_AT_HOME;
        if may {
            self.hurried.threads[count] = t;
            self.hurried.count += 1;
        }
        may
    }

    /// The thread has no deadline any longer.
    pub(crate) fn forget_deadline(&mut self, t: u8) {
        if core::mem::take(&mut self.records[t as usize].deadline) == 0 {
            return;
        }
        if let Some(at) = self.hurried.all().iter().position(|other| *other == t) {
            let hurried = &mut self.hurried;
            hurried.count -= 1;
            let last = usize::from(hurried.count).min(MAX_HURRIED - 1);
            hurried.threads[at] = hurried.threads[last];
            if hurried.misplaced > hurried.count {
                hurried.misplaced = hurried.count;
                self.attention -= u16::from(hurried.count == 0);
            }
        }
    }

    /// Ready threads whose deadline has passed go back among their peers, a few an entry.
    pub(crate) fn forget_missed(&mut self, now: u64) {
        for _ in 0..MOVES {
            let t = self.queues[0].head;
            if self.ready & 1 == 0 || self.due(t) > now {
                break;
            }
            self.forget_deadline(t);
            self.leave_ready(t, 0);
            self.level[t as usize] = self.records[t as usize].base;
            self.queue_ready(t, false);
        }
    }

    /// The same state under another discipline, which has yet to [`adopt`](Self::adopt) it: the form is the
    /// same, so in the component the successor finds it where it is.
    pub fn with_discipline<const OTHER: bool>(self) -> Scheduler<OTHER> {
        macro_rules! fields {
            ($($field:ident)*) => {{
                let Self { $($field),* } = self;
                Scheduler { $($field),* }
            }};
        }
        fields! {
            alarm since armed sleepers ready current top slicing long rest highest attention reaper queues
            links caller tails records level ranks result doomed semaphores later exited any_exited stacks
            shares hurried promises lending crowds
        }
    }

    /// Goes on from what another instance has left, or leaves it: everybody gets to the place that this
    /// discipline gives them, a few an entry. 0, or `-EINVAL`: in another form.
    pub fn adopt(&mut self, words: &Words, format: u64, now: u64) -> Decision {
        let me = self.begin();
        if format != FORMAT {
            return self.decide(me, -EINVAL, now);
        }
        let before = core::mem::replace(&mut self.hurried.misplaced, self.hurried.count);
        self.attention += u16::from(before == 0 && self.hurried.count > 0);
        self.settle_in(words);
        self.decide(me, 0, now)
    }

    /// Puts some threads where they belong that another discipline has put elsewhere.
    #[inline(always)]
    pub(crate) fn settle_in(&mut self, words: &Words) {
        if self.hurried.misplaced > 0 {
            self.move_in(words);
        }
    }

    #[cold]
    #[inline(never)]
    fn move_in(&mut self, words: &Words) {
        for _ in 0..MOVES {
            let Some(rest) = self.hurried.misplaced.checked_sub(1) else { return };
            let Some(&t) = self.hurried.threads.get(usize::from(rest)) else { return };
            self.hurried.misplaced = rest;
            self.attention -= u16::from(rest == 0);
            let level = self.proper_level(t);
            if (level != self.level[t as usize] || EDF && level == 0)
                && !matches!(self.state(t), State::Free | State::Exited)
            {
                self.relevel(words, t, level);
            }
        }
    }
}
