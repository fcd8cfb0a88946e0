//! Stacks: who calls a domain whose stack queue is empty waits here, and gets the next stack in turn.
//!
//! **Problem.** Portal code takes stacks from a queue, and gives them back, by plain loads and stores, and nobody is told: a test in the
//! return leg would cost every call. **Strategy.** A queue for which somebody waits has another *end* (`map::STACKS_WANTED`), with which portal code
//! does not take the last stack there: it comes here instead. While anybody waits, the alarm is 0, so every entry comes past
//! [`Scheduler::serve`], and so does the timer every [`LOOK`]: whatever stack has come back by then is taken out of its queue and *kept* for
//! the first waiter, which becomes ready. It is *offered*, put back into the queue with the plain end, at the moment that its
//! thread begins to run, whose first act is to call again. An interrupt that comes before that act finds the stack still there, and keeps
//! it again. So nobody overtakes; but what is kept for somebody who has yet to run goes to a more urgent one who comes.
//!
//! **Order:** priority, then arrival. **Invariants:**
//! * a thread that waits is in the queue of one domain, whose bit is set; one that is not ready has nothing kept or offered;
//! * each waiter, each stack kept or offered, and each marked queue counts in `attention`;
//! * a domain's kept stacks are in its queue again when [`domain_abort`](Scheduler::domain_abort) returns, and its waiters are ready. So this
//!   is called once more when the portals into a dead domain are closed: nobody comes after it.

use crate::*;
use core::sync::atomic::AtomicU64;
use pebble_abi::map::{self, MAX_STACKS};

/// The stack queues' heads and the descriptors, shared with generated code. Relaxed atomics: plain loads and stores.
#[derive(Clone, Copy)]
pub struct Stacks<'a> {
    pub heads: &'a [AtomicU64; MAX_DOMAINS],
    pub descriptors: &'a [[AtomicU64; 2]; MAX_STACKS],
}

/// Ticks between two looks at the queues for which somebody waits: a millisecond.
pub const LOOK: u64 = TIME_HZ / 1000;
/// Who was interrupted within so many ticks of beginning to run may not have called yet.
const AT_ONCE: u64 = LOOK / 10;
/// Of what is kept: it was offered before, and its thread may have had it and be done with it.
const AGAIN: u16 = 1 << 15;

impl Stacks<'_> {
    /// Number of the first descriptor in the queue.
    fn first(&self, domain: u8) -> Option<u16> {
        Self::number(self.heads[domain as usize].load(Relaxed))
    }

    fn number(address: u64) -> Option<u16> {
        let offset = address.checked_sub(map::stack_desc_va(0))?;
        u16::try_from(offset / 16).ok().filter(|n| usize::from(*n) < MAX_STACKS)
    }

    fn set_end(&self, domain: u8, end: u64) {
        let mut word = &self.heads[domain as usize];
        while let Some(stack) = Self::number(word.load(Relaxed)) {
            word = &self.descriptors[usize::from(stack)][0];
        }
        word.store(end, Relaxed);
    }

    /// Out of the queue.
    fn take(&self, domain: u8) -> Option<u16> {
        let first = self.first(domain)?;
        let next = self.descriptors[usize::from(first)][0].load(Relaxed);
        self.heads[domain as usize].store(next, Relaxed);
        Some(first)
    }

    fn put(&self, domain: u8, stack: u16) {
        let head = &self.heads[domain as usize];
        self.descriptors[usize::from(stack) % MAX_STACKS][0].store(head.load(Relaxed), Relaxed);
        head.store(map::stack_desc_va(stack.into()), Relaxed);
    }
}

/// The state of it all; all zero when nobody waits. Stacks are numbers of descriptors, plus one.
#[repr(C)]
pub(crate) struct Waiters {
    /// When to look again, while anybody waits.
    look: u64,
    /// Bit of each domain for whose stacks somebody waits; who.
    wanted: [u64; MAX_DOMAINS / 64],
    queues: [Queue; MAX_DOMAINS],
    /// Bit of each domain whose queue has the end that says so.
    marked: [u64; MAX_DOMAINS / 64],
    /// When a waiter came; the next number.
    arrival: [u32; MAX_THREADS],
    arrivals: u32,
    /// What is kept for a ready thread, and of which domain.
    kept: [u16; MAX_THREADS],
    domain: [u8; MAX_THREADS],
    /// What the running thread was offered when it began to run.
    offered: u16,
    to: u8,
    since: u64,
}

impl Waiters {
    pub(crate) const fn zero() -> Self {
        Waiters {
            look: 0,
            wanted: [0; MAX_DOMAINS / 64],
            queues: [Queue::of(0); MAX_DOMAINS],
            marked: [0; MAX_DOMAINS / 64],
            arrival: [0; MAX_THREADS],
            arrivals: 0,
            kept: [0; MAX_THREADS],
            domain: [0; MAX_THREADS],
            offered: 0,
            to: 0,
            since: 0,
        }
    }

    fn anybody(&self) -> bool {
        self.wanted != [0; MAX_DOMAINS / 64]
    }

    fn is_wanted(&self, domain: u8) -> bool {
        self.wanted[domain as usize / 64] >> (domain % 64) & 1 == 1
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// The running thread has found no stack in the queue of `domain`; it calls again when it goes on.
    pub fn stack_wait(&mut self, stacks: Stacks, domain: u64, now: u64) -> Decision {
        let me = self.begin();
        let domain = domain as u8;
        if self.is_last() {
            return self.decide(me, 0, now);
        }
        self.leave_ready(me, self.level[me as usize]);
        let home = self.records[me as usize].home;
        let there = stacks.first(domain).is_some() && !self.stacks.is_wanted(domain);
        if there || domain == 0 {
            // It lacks something else: a place for a window.
            self.set_place(me, SLEEPING, home.into());
            self.sleepers.push(&mut self.later, now.wrapping_add(LOOK), me);
        } else {
            self.set_place(me, STACKS | u16::from(domain), home.into());
            if !self.stacks.anybody() {
                self.stacks.look = now.wrapping_add(LOOK);
            }
            self.stacks.arrival[me as usize] = self.stacks.arrivals;
            self.stacks.arrivals = self.stacks.arrivals.wrapping_add(1);
            self.queue_for_stack(domain, me);
        }
        self.decide(me, 0, now)
    }

    /// Behind those that are as urgent and came before.
    pub(crate) fn queue_for_stack(&mut self, domain: u8, t: u8) {
        self.attention += 1;
        let Waiters { wanted, queues, arrival, .. } = &mut self.stacks;
        let bit = 1 << (domain % 64);
        let wanted = &mut wanted[domain as usize / 64];
        if *wanted & bit == 0 {
            *wanted |= bit;
            queues[domain as usize] = Queue::of(t);
            return;
        }
        let (level, now) = (&self.level, arrival[t as usize]);
        queues[domain as usize].insert_before(&mut self.links, t, |other| {
            let earlier = (now.wrapping_sub(arrival[other as usize]) as i32) < 0;
            let (mine, others) = (level[t as usize], level[other as usize]);
            others > mine || others == mine && earlier
        });
    }

    pub(crate) fn unqueue_for_stack(&mut self, domain: u8, t: u8) {
        self.attention -= 1;
        let queue = &mut self.stacks.queues[domain as usize];
        if queue.is_single() {
            self.stacks.wanted[domain as usize / 64] &= !(1 << (domain % 64));
        } else {
            queue.remove(&mut self.links, t);
        }
    }

    /// Must [`serve`](Self::serve) follow what was decided?
    #[inline(always)]
    pub const fn wants_attention(&self) -> bool {
        self.attention != 0
    }

    /// What has been decided, with stacks and shares in view. Then comes [`timer_to_serve`](Self::timer_to_serve).
    pub fn serve(&mut self, stacks: Stacks, decision: Decision, now: u64) -> Decision {
        let t = self.begin();
        self.charge(now);
        self.keep_again(stacks, now);
        self.keep_for_waiters(stacks);
        self.mark(stacks);
        if now >= self.stacks.look {
            self.stacks.look = now.wrapping_add(LOOK);
        }
        self.select_allowed();
        let next = self.current.head;
        let decision = if next == t { decision } else { self.instead(t, decision, now) };
        self.offer(stacks, next, now);
        self.alarm = if self.attention == 0 { self.sleepers.due() } else { 0 };
        decision
    }

    /// [`timer`](Self::timer) after `serve`.
    pub fn timer_to_serve(&mut self, now: u64) -> Option<u64> {
        let look = if self.stacks.anybody() { self.stacks.look } else { NEVER };
        self.timer_before(look.min(self.share_ends(now)), now)
    }

    /// The current thread runs instead of `t`, which was about to, or to go on.
    fn instead(&mut self, t: u8, Decision { thread, value }: Decision, now: u64) -> Decision {
        if thread == STAY && self.place(t) == Place::Ready {
            self.stop_ready(t, now);
        } else {
            self.stop(t, now);
        }
        self.set_result(t, value as i8);
        let next = self.current.head;
        let result = core::mem::take(&mut self.result[next as usize]);
        self.attention -= u16::from(result != 0);
        Decision { thread: next.into(), value: result.into() }
    }

    /// What was offered to a thread that has been interrupted at once is kept for it again.
    fn keep_again(&mut self, stacks: Stacks, now: u64) {
        let (offered, to) = (core::mem::take(&mut self.stacks.offered), self.stacks.to);
        if offered == 0 {
            return;
        }
        let domain = self.stacks.domain[to as usize];
        let untouched = stacks.first(domain) == Some(offered - 1) && self.place(to) == Place::Ready;
        if untouched && now.wrapping_sub(self.stacks.since) <= AT_ONCE {
            let _ = stacks.take(domain);
            self.stacks.kept[to as usize] = offered | AGAIN;
        } else {
            self.attention -= 1;
        }
    }

    /// Every stack that has come back goes to whoever waits for it.
    fn keep_for_waiters(&mut self, stacks: Stacks) {
        for part in 0..MAX_DOMAINS / 64 {
            let mut rest = self.stacks.wanted[part];
            while rest != 0 {
                let domain = (part * 64) as u8 + rest.trailing_zeros() as u8;
                rest &= rest - 1;
                while self.stacks.is_wanted(domain)
                    && let Some(stack) =
                        stacks.take(domain).map(|n| n + 1).or_else(|| self.from_less_urgent(domain))
                {
                    let t = self.first_to_go(domain);
                    self.attention += 1;
                    self.stacks.domain[t as usize] = domain;
                    self.stacks.kept[t as usize] = stack;
                }
            }
        }
    }

    /// What is kept for a thread that has yet to run, and is less urgent than the first that waits. That thread waits again, where it was; or, if
    /// it has run, finds out whether it must.
    fn from_less_urgent(&mut self, domain: u8) -> Option<u16> {
        let first = self.level[self.stacks.queues[domain as usize].head as usize];
        let has = |t: &u8| {
            self.stacks.kept[*t as usize] != 0
                && self.stacks.domain[*t as usize] == domain
                && self.level[*t as usize] > first
        };
        let t = (0..=u8::MAX).filter(has).max_by_key(|t| self.level[*t as usize])?;
        self.attention -= 1;
        let stack = core::mem::take(&mut self.stacks.kept[t as usize]);
        if stack & AGAIN == 0 {
            self.leave_ready(t, self.level[t as usize]);
            self.set_place(t, STACKS | u16::from(domain), self.records[t as usize].home.into());
            self.queue_for_stack(domain, t);
        }
        Some(stack & !AGAIN)
    }

    /// The queues for which somebody waits, and no others, have the end that says so.
    fn mark(&mut self, stacks: Stacks) {
        for part in 0..MAX_DOMAINS / 64 {
            let mut rest = self.stacks.wanted[part] ^ self.stacks.marked[part];
            while rest != 0 {
                let domain = (part * 64) as u8 + rest.trailing_zeros() as u8;
                rest &= rest - 1;
                self.set_mark(stacks, domain, self.stacks.is_wanted(domain));
            }
        }
    }

    fn set_mark(&mut self, stacks: Stacks, domain: u8, wanted: bool) {
        let (marked, bit) = (&mut self.stacks.marked[domain as usize / 64], 1 << (domain % 64));
        if (*marked & bit != 0) != wanted {
            *marked ^= bit;
            self.attention = if wanted { self.attention + 1 } else { self.attention - 1 };
            stacks.set_end(domain, if wanted { map::STACKS_WANTED } else { map::STACKS_END });
        }
    }

    /// The first to wait becomes ready.
    fn first_to_go(&mut self, domain: u8) -> u8 {
        let t = self.stacks.queues[domain as usize].head;
        self.unqueue_for_stack(domain, t);
        self.make_ready(t);
        t
    }

    fn offer(&mut self, stacks: Stacks, t: u8, now: u64) {
        let stack = core::mem::take(&mut self.stacks.kept[t as usize]) & !AGAIN;
        if stack != 0 {
            let domain = self.stacks.domain[t as usize];
            stacks.put(domain, stack - 1);
            self.set_mark(stacks, domain, false);
            (self.stacks.offered, self.stacks.to, self.stacks.since) = (stack, t, now);
        }
    }

    /// Nothing of the domain is kept, and nobody waits for it.
    pub(crate) fn abandon_stacks(&mut self, stacks: Stacks, domain: u8) {
        for t in 0..MAX_THREADS {
            if self.stacks.kept[t] != 0 && self.stacks.domain[t] == domain {
                stacks.put(domain, (core::mem::take(&mut self.stacks.kept[t]) & !AGAIN) - 1);
                self.attention -= 1;
            }
        }
        while self.stacks.is_wanted(domain) {
            self.first_to_go(domain);
        }
    }
}
