//! Deadlines: the discipline of `Scheduler<true>`, and how one instance goes on where another stopped.
//!
//! **Strategy.** A thread that has declared a deadline is raised to level 0, whose ready queue is in order of deadline; those
//! of level 0 that have declared none come last there. All else is as without deadlines: whoever is behind them shares the processor by priority,
//! in turns. A deadline that passes before the thread has declared another, or slept, is forgotten: the thread goes back
//! among those of its priority. So nobody keeps the others out by missing deadlines.
//!
//! **Invariants**, with deadlines: `level` is 0 for a thread with a deadline, else what its priority says (`base`); the timer is due no later
//! than the deadline of the running thread, if that one is at level 0 (a thread may have declared it to an instance without deadlines, on its
//! way out). Without them `level` is `base`, and what threads declare is kept for a successor.

use crate::*;

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

    /// Where it belongs.
    pub(crate) fn proper_level(&self, t: u8) -> u8 {
        let record = &self.records[t as usize];
        if EDF && record.deadline != 0 { 0 } else { record.base }
    }

    /// The calling thread wants to be done so many ticks from now; 0: it takes back what it has said. 0, or `-EINVAL`: too far away.
    pub fn deadline(&mut self, words: &Words, ticks: u64, now: u64) -> Decision {
        let me = self.begin();
        if ticks > MAX_DEADLINE {
            return self.decide(me, -EINVAL, now);
        }
        self.records[me as usize].deadline = if ticks == 0 { 0 } else { now.wrapping_add(ticks) };
        self.relevel(words, me, self.proper_level(me));
        self.decide(me, 0, now)
    }

    /// Ready threads whose deadline has passed go back among their peers.
    pub(crate) fn forget_missed(&mut self, now: u64) {
        while self.ready & 1 != 0 {
            let t = self.queues[0].head;
            if self.due(t) > now {
                break;
            }
            self.records[t as usize].deadline = 0;
            self.leave_ready(t, 0);
            self.level[t as usize] = self.records[t as usize].base;
            self.place_ready(t, false);
        }
    }

    /// The same state under another discipline, which has yet to [`adopt`](Self::adopt) it: the form is the same, so in the component the
    /// successor finds it where it is.
    pub fn with_discipline<const OTHER: bool>(self) -> Scheduler<OTHER> {
        macro_rules! fields {
            ($($field:ident)*) => {{
                let Self { $($field),* } = self;
                Scheduler { $($field),* }
            }};
        }
        fields! {
            alarm since armed sleepers ready current top slicing attention reaper queues links
            level caller tails records result doomed semaphores later exited any_exited stacks shares
        }
    }

    /// Goes on from what another instance has left, or leaves it: everybody gets to the place that this discipline gives them.
    /// 0, or `-EINVAL`: in another form.
    pub fn adopt(&mut self, words: &Words, format: u64, now: u64) -> Decision {
        let me = self.begin();
        if format != FORMAT {
            return self.decide(me, -EINVAL, now);
        }
        for t in 0..=u8::MAX {
            let level = self.proper_level(t);
            let moves = level != self.level[t as usize] || EDF && level == 0;
            if moves && !matches!(self.place(t), Place::Free | Place::Exited) {
                self.relevel(words, t, level);
            }
        }
        self.decide(me, 0, now)
    }
}
