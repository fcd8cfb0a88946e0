//! Shares: a domain whose threads get no more than so many percent of the processor.
//!
//! **Strategy.** Time goes in periods. What a domain's threads (those whose home it is) run is charged to it,
//! whatever domain they are in; when its share of the period is used up, each of its threads is *held* at the
//! moment that it would run next, until the period ends. While there is any share the alarm is 0, so every
//! entry comes past [`Scheduler::serve`], and the timer is set to when the running thread's share ends: a
//! system without shares pays nothing.
//!
//! **Invariants:** each share counts in `attention`, as long as it lasts, and so does each held thread; a
//! thread that is to die is not held, nor one for longer than a period and the time that it takes to let go
//! of the others, a few an entry. A domain's share ends with [`domain_abort`](Scheduler::domain_abort).

use crate::*;

/// Ticks of a period: as long as a slice, since a held thread may have what others wait for.
pub const PERIOD: u64 = SLICE;

/// Held threads that one entry lets go, and threads that one entry holds: whoever is selected then runs,
/// until the timer ticks at once.
const STEPS: u16 = 2;

/// All zero without shares.
#[repr(C)]
pub(crate) struct Shares {
    /// Percent of each domain; 0: no share, it may run without end.
    percent: [u8; MAX_DOMAINS],
    /// Ticks run and not paid for, up to the period that `paid` says.
    used: [u32; MAX_DOMAINS],
    paid: [u32; MAX_DOMAINS],
    /// Domains with a share.
    count: u16,
    /// Who runs since when and is not charged yet.
    running: u8,
    since: u64,
    /// Number and end of the period.
    period: u32,
    end: u64,
    /// Held threads, the first held first; how many; of how many the period is over.
    held: Queue,
    holds: u16,
    over: u16,
}

impl Shares {
    pub(crate) const fn zero() -> Self {
        Shares {
            percent: [0; MAX_DOMAINS],
            used: [0; MAX_DOMAINS],
            paid: [0; MAX_DOMAINS],
            count: 0,
            running: 0,
            since: 0,
            period: 0,
            end: 0,
            held: Queue::of(0),
            holds: 0,
            over: 0,
        }
    }

    fn share(&self, domain: u8) -> u64 {
        PERIOD * u64::from(self.percent[domain as usize]) / 100
    }

    /// Pays for what it has used with the shares of the periods that are over. Who has run for longer than it
    /// may, with interrupts off, owes the rest.
    fn used(&mut self, domain: u8) -> u64 {
        let d = domain as usize;
        let periods = self.period.wrapping_sub(core::mem::replace(&mut self.paid[d], self.period));
        let paid = self.share(domain).saturating_mul(periods.into());
        self.used[d] = u64::from(self.used[d]).saturating_sub(paid) as u32;
        self.used[d].into()
    }

    /// Ticks that a domain has left in this period, if it has a share.
    fn left(&mut self, domain: u8) -> Option<u64> {
        let left = self.share(domain).saturating_sub(self.used(domain));
        (self.percent[domain as usize] != 0).then_some(left)
    }

    pub(crate) fn any(&self) -> bool {
        self.count != 0 || self.holds != 0
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// The threads of a domain run for so many percent of the time at most; 0 or 100: as long as they like.
    /// 0, or `-EINVAL`: no such domain or share.
    pub fn share(&mut self, domain: Asid, percent: u64, now: u64) -> Decision {
        let me = self.begin();
        let error = match (u8::try_from(domain.get()), percent) {
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
        let _ = shares.used(domain);
        let before = core::mem::replace(&mut shares.percent[domain as usize], percent);
        if before == 0 && percent != 0 {
            if !shares.any() {
                (shares.running, shares.since, shares.end) = (me, now, now.wrapping_add(PERIOD));
            }
            shares.count += 1;
            shares.used[domain as usize] = 0;
            self.attention += 1;
        } else if before != 0 && percent == 0 {
            shares.count -= 1;
            self.attention -= 1;
            // Those of others are held again when their turn comes.
            shares.over = shares.holds;
        }
    }

    /// The domain is dying: its threads run until they have found their way out.
    pub(crate) fn end_share(&mut self, domain: u8) {
        self.set_share(domain, 0, 0, 0);
    }

    /// Threads whose period of being held is over are ready again.
    pub(crate) fn let_go(&mut self) {
        for _ in 0..self.shares.over.min(STEPS) {
            self.release(self.shares.held.head);
        }
    }

    /// A held thread is ready again.
    pub(crate) fn release(&mut self, t: u8) {
        let shares = &mut self.shares;
        shares.holds -= 1;
        shares.over = shares.over.saturating_sub(1);
        self.attention -= 1;
        if shares.holds > 0 {
            shares.held.remove(&mut self.links, t);
        }
        self.make_ready(t);
    }

    fn hold(&mut self, t: u8) {
        self.leave_ready(t, self.level[t as usize]);
        // What was kept for it would lie idle; and an heir is known by what it would wait on.
        self.disinherit(t);
        let home = u16::from(self.records[t as usize].home);
        self.set_waiting(t, HELD, home.into());
        let shares = &mut self.shares;
        if shares.holds == 0 {
            shares.held = Queue::of(t);
        } else {
            shares.held.push_back(&mut self.links, t);
        }
        shares.holds += 1;
        self.attention += 1;
    }

    /// Charges whoever has run, ends the period when it is over.
    pub(crate) fn charge(&mut self, now: u64) {
        let shares = &mut self.shares;
        if !shares.any() {
            return;
        }
        let home = self.records[shares.running as usize].home;
        let ran = now.wrapping_sub(shares.since) as u32;
        let _ = shares.used(home);
        shares.used[home as usize] = shares.used[home as usize].saturating_add(ran);
        shares.since = now;
        if now >= shares.end {
            shares.end = now.wrapping_add(PERIOD);
            shares.period = shares.period.wrapping_add(1);
            shares.over = shares.holds;
        }
    }

    /// Makes the most urgent thread current that may run.
    pub(crate) fn select_allowed(&mut self) {
        self.select();
        for _ in 0..STEPS {
            let t = self.current.head;
            let home = self.records[t as usize].home;
            if self.shares.count == 0 || self.is_last() {
                break;
            }
            if self.doomed.has(t) || self.shares.left(home) != Some(0) {
                break;
            }
            self.begin();
            self.hold(t);
            self.select();
        }
        self.shares.running = self.current.head;
    }

    /// When the running thread must stop, or held ones go on.
    pub(crate) fn share_ends(&mut self, now: u64) -> u64 {
        if !self.shares.any() {
            return NEVER;
        }
        if self.shares.over > 0 {
            return now;
        }
        let home = self.records[self.current.head as usize].home;
        let left = self.shares.left(home).map_or(NEVER, |left| now.wrapping_add(left.max(1)));
        left.min(self.shares.end)
    }
}
