//! Shares: a domain whose threads get no more than so many percent of the processor.
//!
//! **Strategy.** Time goes in periods. What a domain's threads (those whose home it is) run is charged to it, whatever domain they are in; when its
//! share of the period is used up, each of its threads is *held* at the moment that it would run next, until the period ends. While there is
//! any share the alarm is 0, so every entry comes past [`Scheduler::serve`], and the timer is set to when the running thread's share ends:
//! a system without shares pays nothing.
//!
//! **Invariants:** each share counts in `attention`, as long as it lasts; held threads belong to domains with a share; a thread that is to die is
//! not held. A domain's share ends with [`domain_abort`](Scheduler::domain_abort).

use crate::*;

/// Ticks of a period: as long as a slice, since a held thread may have what others wait for.
pub const PERIOD: u64 = SLICE;

/// All zero without shares.
#[repr(C)]
pub(crate) struct Shares {
    /// Percent of each domain; 0: no share, it may run without end.
    percent: [u8; MAX_DOMAINS],
    /// Ticks run in this period.
    used: [u32; MAX_DOMAINS],
    /// Domains with a share.
    count: u16,
    /// Who runs since when and is not charged yet.
    running: u8,
    since: u64,
    /// End of the period.
    end: u64,
}

impl Shares {
    pub(crate) const fn zero() -> Self {
        Shares { percent: [0; MAX_DOMAINS], used: [0; MAX_DOMAINS], count: 0, running: 0, since: 0, end: 0 }
    }

    /// Ticks that a domain has left in this period, if it has a share.
    fn left(&self, domain: u8) -> Option<u64> {
        let percent = u64::from(self.percent[domain as usize]);
        let left = (PERIOD * percent / 100).saturating_sub(self.used[domain as usize].into());
        (percent != 0).then_some(left)
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// The threads of a domain run for so many percent of the time at most; 0 or 100: as long as they like.
    /// 0, or `-EINVAL`: no such domain or share.
    pub fn share(&mut self, domain: u64, percent: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = match (u8::try_from(domain), percent) {
            (Ok(domain @ 1..), 0..=100) => {
                self.set_share(domain, percent as u8 % 100, me, now);
                0
            }
            _ => -EINVAL,
        };
        self.decide(me, error, now)
    }

    fn set_share(&mut self, domain: u8, percent: u8, me: u8, now: u64) {
        let shares = &mut self.shares;
        let before = core::mem::replace(&mut shares.percent[domain as usize], percent);
        if before == 0 && percent != 0 {
            if shares.count == 0 {
                (shares.running, shares.since, shares.end) = (me, now, now.wrapping_add(PERIOD));
            }
            shares.count += 1;
            shares.used[domain as usize] = 0;
            self.attention += 1;
        } else if before != 0 && percent == 0 {
            shares.count -= 1;
            self.attention -= 1;
            self.let_go(|home| home == domain);
        }
    }

    /// The domain is dying: its threads run until they have found their way out.
    pub(crate) fn end_share(&mut self, domain: u8) {
        self.set_share(domain, 0, 0, 0);
    }

    /// Held threads of such homes are ready again.
    fn let_go(&mut self, which: impl Fn(u8) -> bool) {
        for t in 0..=u8::MAX {
            if self.place(t) == Place::Held && which(self.records[t as usize].home) {
                self.make_ready(t);
            }
        }
    }

    /// Charges whoever has run, ends the period when it is over.
    pub(crate) fn charge(&mut self, now: u64) {
        if self.shares.count == 0 {
            return;
        }
        let home = self.records[self.shares.running as usize].home;
        let ran = now.wrapping_sub(self.shares.since) as u32;
        let used = &mut self.shares.used[home as usize];
        *used = used.saturating_add(ran);
        self.shares.since = now;
        if now >= self.shares.end {
            self.shares.end = now.wrapping_add(PERIOD);
            // Who has run for longer than it may, with interrupts off, owes the rest.
            for (used, percent) in self.shares.used.iter_mut().zip(&self.shares.percent) {
                *used = used.saturating_sub((PERIOD * u64::from(*percent) / 100) as u32);
            }
            self.let_go(|_| true);
        }
    }

    /// Makes the most urgent thread current that may run.
    pub(crate) fn select_allowed(&mut self) {
        self.select();
        while self.shares.count != 0 && !self.is_last() {
            let t = self.current.head;
            let home = self.records[t as usize].home;
            if self.doomed[t as usize] || self.shares.left(home) != Some(0) {
                break;
            }
            self.begin();
            self.leave_ready(t, self.level[t as usize]);
            self.set_place(t, HELD, home.into());
            self.select();
        }
        self.shares.running = self.current.head;
    }

    /// When the running thread must stop, or held ones go on.
    pub(crate) fn share_ends(&self, now: u64) -> u64 {
        if self.shares.count == 0 {
            return NEVER;
        }
        let home = self.records[self.current.head as usize].home;
        let left = self.shares.left(home).map_or(NEVER, |left| now.wrapping_add(left.max(1)));
        left.min(self.shares.end)
    }
}
