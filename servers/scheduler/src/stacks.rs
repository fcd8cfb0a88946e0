//! Stacks: who calls a domain whose stack queue is empty waits here, and gets the next stack in turn.
//!
//! **Problem.** Portal code takes stacks from a queue, and gives them back, by plain loads and stores, and
//! nobody is told: a test in the return leg would cost every call. And the scheduler must not have a hand on
//! what portal code follows to a stack.
//!
//! **Strategy.** Three short-circuit portals ([`Stacks`]) move the stacks of one domain between its queue and
//! those *kept* for who waits; they name no stack, so none can be aimed or given to another domain. The queue
//! of a *wanted* domain has another end (`map::STACKS_WANTED`), with which portal code does not take the last
//! stack there: it comes here instead. Wanted domains stand in a ring. Each entry *looks* at the one whose
//! turn it is, and so does the timer every [`LOOK`] at a few: what has come back is kept, and the first
//! waiter becomes ready, as the *heir*. When it begins to run the stack is *offered*: put back, with the
//! plain end, for its first act is to call again. An interrupt that comes before that act finds the stack
//! still there, and keeps it again, twice at most: an heir that is done with it looks the same. So nobody
//! overtakes; but an heir who has yet to run stands back for a waiter that is more urgent.
//!
//! While nobody inherits, and nothing has come back where this entry looks, all goes the quick way
//! ([`calm`](Scheduler::calm)).
//!
//! **Order.** First those who are abroad, in a component where threads have waited for locks, however little
//! urgent: they may hold one, for which everybody waits. Then all others. Among each, priority, then arrival;
//! who had to stand back is the first of its priority. A family waits behind its own: who comes while another
//! thread of its family waits stands in a second group, which gets every second stack. So two hundred threads
//! of one family, each of which keeps a stack for a moment, hold up another's only thread for twice as many
//! turns as there are families, not threads.
//!
//! **Invariants:**
//! * a thread that waits is in the line of one domain, which is in the ring; one that inherits is ready, and
//!   the only heir of its domain;
//! * a domain leaves the ring when nobody waits for it, and what was kept is back in its queue;
//! * each heir, and an offer, counts in `attention`;
//! * nobody waits for a domain when the last piece of [`domain_abort`](Scheduler::domain_abort) returns, and
//!   it is out of the ring. So this is called once more when the portals into a dead domain are closed:
//!   nobody comes after it. What was kept the portal manager finds.

use crate::*;
use pebble_abi::map;

/// What can be done to the stack queue of a domain; see `pebble_portal::hardware::Stacks`.
pub trait Stacks {
    /// The head of the queue: a stack, or an end.
    fn head(&self, domain: u8) -> u64;
    /// Keeps the first in the queue; whether there was one. An empty queue is marked: callers come here.
    fn keep(&self, domain: u8) -> bool;
    /// Puts one that is kept into the queue, for whoever calls next.
    fn offer(&self, domain: u8) -> bool;
    /// Puts all that are kept back, if the queue is empty and marked; whether it was.
    fn release(&self, domain: u8) -> bool;
}

/// Ticks between two looks at the domains for which somebody waits: a millisecond.
pub const LOOK: u64 = TIME_HZ / 1000;
/// Domains at which the timer looks.
const AT_A_TIME: usize = 3;
/// Stacks of a domain that one look may keep.
const TAKES: usize = 2;
/// Who was interrupted within so many ticks of beginning to run may not have called yet.
const AT_ONCE: u64 = LOOK / 10;

/// Whether a stack is kept for somebody who is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Inherited {
    No,
    Yes,
    /// It was offered to the heir before, who may have had it and be done with it.
    Again,
    /// It was so twice: it is not kept for the heir once more, be it interrupted at once ever so often.
    Last,
}

impl Inherited {
    /// It has been offered, and the stack is still there.
    const fn again(self) -> Option<Inherited> {
        match self {
            Inherited::Yes => Some(Inherited::Again),
            Inherited::Again => Some(Inherited::Last),
            Inherited::No | Inherited::Last => None,
        }
    }
}

/// Who goes before whom in a line.
#[repr(C)]
struct Standing {
    /// Domains where threads have waited for locks; threads that wait in one, or did so last, which is not
    /// their home.
    locks: Bits,
    abroad: Bits,
    /// Of each crowd, how many wait that are not abroad; those before whom one of their own waited when they
    /// came.
    waiting: [u8; MAX_DOMAINS],
    behind: Bits,
}

impl Standing {
    const fn zero() -> Self {
        Standing { locks: Bits::NONE, abroad: Bits::NONE, waiting: [0; MAX_DOMAINS], behind: Bits::NONE }
    }

    /// Where a thread of this level belongs, the lowest first.
    fn order(&self, t: u8, level: u8) -> u8 {
        let home = if self.abroad.has(t) { 0 } else { PRIORITIES as u8 };
        (home + level) << 1 | u8::from(self.behind.has(t))
    }

    /// A thread comes to a line, or comes back to the head of it.
    fn come(&mut self, t: u8, crowd: u8, back: bool) {
        let (others, at_home) = (&mut self.waiting[usize::from(crowd)], !self.abroad.has(t));
        if !back {
            self.behind.set(t, at_home && *others > 0);
        }
        *others += u8::from(at_home);
    }

    fn go(&mut self, t: u8, crowd: u8) {
        self.waiting[usize::from(crowd)] -= u8::from(!self.abroad.has(t));
    }
}

/// A wanted domain.
#[derive(Clone, Copy)]
#[repr(C)]
struct Demand {
    line: Queue,
    /// Members of the line.
    waiters: u8,
    /// Stacks that are kept.
    kept: u8,
    /// For whom one of them is, unless `inherited` says that it is nobody's.
    heir: u8,
    inherited: Inherited,
    /// The next one is for who stands behind another of its family.
    behind_next: bool,
    /// It is in the ring, behind one domain and before another.
    wanted: bool,
    before: u8,
    behind: u8,
}

const _: () = assert!(size_of::<Demand>() == 10, "the state has a page more");

/// The state of it all; all zero when nobody waits.
#[repr(C)]
pub(crate) struct Waiters {
    /// When to look again, while any domain is wanted.
    look: u64,
    /// Wanted domains; the one at which the next entry looks.
    count: u8,
    turn: u8,
    demands: [Demand; MAX_DOMAINS],
    standing: Standing,
    /// Of which domain a stack was offered to the running thread when it began to run, the head of the queue
    /// then; 0: of none.
    offered: u8,
    offered_as: Inherited,
    to: u8,
    head: u64,
    since: u64,
}

impl Waiters {
    pub(crate) const fn zero() -> Self {
        let demand = Demand {
            line: Queue::of(0),
            waiters: 0,
            kept: 0,
            heir: 0,
            inherited: Inherited::No,
            behind_next: false,
            wanted: false,
            before: 0,
            behind: 0,
        };
        Waiters {
            look: 0,
            count: 0,
            turn: 0,
            demands: [demand; MAX_DOMAINS],
            standing: Standing::zero(),
            offered: 0,
            offered_as: Inherited::No,
            to: 0,
            head: 0,
            since: 0,
        }
    }

    pub(crate) const fn any(&self) -> bool {
        self.count != 0
    }

    /// In the domain threads wait for locks; or it is dying.
    pub(crate) fn has_locks(&mut self, domain: u8, has: bool) {
        self.standing.locks.set(domain, has);
    }

    /// Into the ring, where the next look comes to it.
    fn want(&mut self, domain: u8) {
        let (turn, d) = (self.turn, usize::from(domain));
        if !self.demands[d].wanted {
            let (before, behind) = if self.count == 0 {
                (domain, domain)
            } else {
                (self.demands[usize::from(turn)].before, turn)
            };
            self.demands[d] = Demand { wanted: true, before, behind, ..self.demands[d] };
            self.demands[usize::from(before)].behind = domain;
            self.demands[usize::from(behind)].before = domain;
            self.count += 1;
        }
        self.turn = domain;
    }

    /// Out of the ring.
    fn leave(&mut self, domain: u8) {
        let Demand { before, behind, .. } = self.demands[usize::from(domain)];
        self.demands[usize::from(domain)].wanted = false;
        self.demands[usize::from(before)].behind = behind;
        self.demands[usize::from(behind)].before = before;
        if self.turn == domain {
            self.turn = behind;
        }
        self.count -= 1;
    }

    /// The domain whose turn it is; the turn passes on.
    #[inline(always)]
    fn next(&mut self) -> u8 {
        let domain = self.turn;
        self.turn = self.demands[usize::from(domain)].behind;
        domain
    }
}

impl<const EDF: bool> Scheduler<EDF> {
    /// The running thread, which is in `caller`, has found no stack in the queue of `domain`; it calls again
    /// when it goes on.
    pub fn stack_wait(&mut self, stacks: &impl Stacks, domain: Asid, caller: Asid, now: u64) -> Decision {
        let me = self.begin();
        let domain = domain.get() as u8;
        if self.is_last() {
            return self.decide(me, 0, now);
        }
        self.stop_being_ready(me);
        let home = self.records[me as usize].home;
        let at_home = Asid::from(u16::from(home));
        if domain == 0 || self.lacks_no_stack(stacks, domain, me) {
            self.set_waiting(me, SLEEPING, at_home);
            self.push_sleeper(now.wrapping_add(LOOK), me);
        } else {
            self.set_waiting(me, STACKS | u16::from(domain), at_home);
            let caller = caller.get() as u8;
            let standing = &mut self.stacks.standing;
            standing.abroad.set(me, caller != home && standing.locks.has(caller));
            if !self.stacks.any() {
                self.stacks.look = now.wrapping_add(LOOK);
            }
            self.queue_for_stack(domain, me);
            self.stacks.want(domain);
            // From now on nobody passes by the line.
            self.keep_one(stacks, domain);
        }
        self.decide(me, 0, now)
    }

    /// It lacks something else: a place for a window.
    fn lacks_no_stack(&self, stacks: &impl Stacks, domain: u8, me: u8) -> bool {
        let waiting = &self.stacks;
        let offered = waiting.offered == domain && waiting.to == me;
        let head = stacks.head(domain);
        if offered {
            head == waiting.head
        } else {
            head > map::STACKS_END && !waiting.demands[usize::from(domain)].wanted
        }
    }

    fn line(&mut self, domain: u8) -> queue::Line<'_> {
        let queue = &mut self.stacks.demands[usize::from(domain)].line;
        queue::Line { queue, links: &mut self.links, ranks: &mut self.ranks }
    }

    /// Who gets the next stack of a domain for which somebody waits.
    fn next_for_stack(&mut self, domain: u8) -> u8 {
        let Demand { line, behind_next, .. } = self.stacks.demands[usize::from(domain)];
        let first = self.ranks.of[usize::from(line.head)];
        let second = self.line(domain).second_group();
        let others = |t: u8| self.crowds.of(t) != self.crowds.of(line.head);
        let Some((behind, _)) = second.filter(|(t, its)| first & 1 == 0 && *its == first + 1 && others(*t))
        else {
            return line.head;
        };
        self.stacks.demands[usize::from(domain)].behind_next = !behind_next;
        if behind_next { behind } else { line.head }
    }

    /// The level of the most urgent that waits. Whoever is abroad stands before all others, be it ever so
    /// little urgent.
    fn most_urgent_for_stack(&self, domain: u8) -> u8 {
        let Queue { head, tail } = self.stacks.demands[usize::from(domain)].line;
        let mut first = head;
        while self.stacks.standing.abroad.has(first) {
            let last = if head == tail { tail } else { self.ranks.last(first) };
            if last == tail {
                break;
            }
            first = self.links.next[usize::from(last)];
        }
        self.level[usize::from(head)].min(self.level[usize::from(first)])
    }

    /// Behind those that are as urgent.
    pub(crate) fn queue_for_stack(&mut self, domain: u8, t: u8) {
        self.stand_in_line(domain, t, false);
    }

    /// One waiter more, who has come or comes `back`: before those who are as urgent.
    fn stand_in_line(&mut self, domain: u8, t: u8, back: bool) {
        self.long = true;
        let standing = &mut self.stacks.standing;
        standing.come(t, self.crowds.of(t), back);
        self.ranks.of[t as usize] = standing.order(t, self.level[t as usize]);
        let demand = &mut self.stacks.demands[usize::from(domain)];
        demand.waiters += 1;
        if demand.waiters == 1 {
            demand.line = Queue::of(t);
        } else {
            self.line(domain).insert(t, back);
        }
    }

    pub(crate) fn unqueue_for_stack(&mut self, domain: u8, t: u8) {
        let demand = &mut self.stacks.demands[usize::from(domain)];
        demand.waiters -= 1;
        if demand.waiters > 0 {
            self.line(domain).remove(t);
        }
        self.stacks.standing.go(t, self.crowds.of(t));
    }

    /// Must [`serve`](Self::serve) follow what was decided?
    #[inline(always)]
    pub const fn wants_attention(&self) -> bool {
        self.attention != 0 || self.stacks.any()
    }

    /// Is all as usual, but that some wait for stacks, of which none has come back to the domain at which
    /// this entry looks? Then a quick method may be tried, until [`alarm_again`](Self::alarm_again).
    pub fn calm(&mut self, stacks: &impl Stacks) -> bool {
        if self.attention != 0 || !self.stacks.any() {
            return false;
        }
        let domain = self.stacks.turn;
        let Demand { waiters, kept, .. } = self.stacks.demands[usize::from(domain)];
        if waiters == 0 || kept != 0 || stacks.head(domain) != map::STACKS_WANTED {
            return false;
        }
        let _ = self.stacks.next();
        self.alarm = self.sleepers.due().min(self.stacks.look);
        true
    }

    /// After [`calm`](Self::calm).
    #[inline(always)]
    pub fn alarm_again(&mut self) {
        self.alarm = 0;
    }

    /// What has been decided, with stacks and shares in view. Then comes
    /// [`timer_to_serve`](Self::timer_to_serve).
    pub fn serve(&mut self, words: &Words, stacks: &impl Stacks, decision: Decision, now: u64) -> Decision {
        let t = self.begin();
        self.charge(now);
        self.keep_again(stacks, now);
        if !self.long {
            self.look(words, stacks, now);
        }
        if !self.long {
            self.let_go();
            self.settle_in(words);
        }
        if !self.long {
            self.lend(words, now);
        }
        self.select_allowed();
        let next = self.current.head;
        let decision = if next == t { decision } else { self.instead(t, decision, now) };
        self.offer(stacks, next, now);
        self.rest = core::mem::take(&mut self.long) && self.burdened();
        self.set_alarm();
        decision
    }

    /// [`timer`](Self::timer) after `serve`.
    pub fn timer_to_serve(&mut self, now: u64) -> Option<u64> {
        let look = if self.stacks.any() { self.stacks.look } else { NEVER };
        let turn = self.lending.due(self.top, self.rest);
        let look = look.min(self.share_ends(now)).min(turn);
        self.timer_before(look, now)
    }

    /// The current thread runs instead of `t`, which was about to, or to go on.
    fn instead(&mut self, t: u8, Decision { thread, value }: Decision, now: u64) -> Decision {
        if thread == STAY && self.state(t) == State::Ready {
            self.stop_ready(t, now);
        } else {
            self.stop(t, now);
        }
        self.set_result(t, value as i16);
        let next = self.current.head;
        let result = core::mem::take(&mut self.result[next as usize]);
        self.attention -= u16::from(result != 0);
        Decision { thread: next.into(), value: result.into() }
    }

    /// What was offered to a thread that has been interrupted at once is kept for it again.
    fn keep_again(&mut self, stacks: &impl Stacks, now: u64) {
        let (domain, to) = (core::mem::take(&mut self.stacks.offered), self.stacks.to);
        if domain == 0 {
            return;
        }
        self.attention -= 1;
        let untouched = stacks.head(domain) == self.stacks.head && self.state(to) == State::Ready;
        let at_once = now.wrapping_sub(self.stacks.since) <= AT_ONCE;
        let Some(again) = self.stacks.offered_as.again().filter(|_| untouched && at_once) else { return };
        if self.keep_one(stacks, domain) {
            self.bequeath(domain, to, again);
        }
    }

    /// Looks at the domain whose turn it is; when it is time, lends a turn for it, or looks at a few.
    fn look(&mut self, words: &Words, stacks: &impl Stacks, now: u64) {
        let mut looks = 1;
        if now >= self.stacks.look {
            self.stacks.look = now.wrapping_add(LOOK);
            let turn = self.stacks.turn;
            let waits = self.stacks.demands[usize::from(turn)].waiters > 0;
            // One or the other: with both this would be the longest path of all.
            let lent = waits && self.lend_for_stack(words, self.most_urgent_for_stack(turn), now);
            looks = if lent { 0 } else { AT_A_TIME };
        }
        for _ in 0..looks.min(self.stacks.count.into()) {
            let domain = self.stacks.next();
            self.look_at(stacks, domain);
            if self.long {
                break;
            }
        }
    }

    /// Keeps a stack of the domain's, if one is there.
    fn keep_one(&mut self, stacks: &impl Stacks, domain: u8) -> bool {
        let keeps = stacks.keep(domain);
        self.stacks.demands[usize::from(domain)].kept += u8::from(keeps);
        keeps
    }

    /// What has come back is kept, and goes to whoever waits for it.
    fn look_at(&mut self, stacks: &impl Stacks, domain: u8) {
        for _ in 0..TAKES {
            if !self.keep_one(stacks, domain) {
                break;
            }
        }
        let demand = self.stacks.demands[usize::from(domain)];
        if demand.waiters == 0 {
            if demand.inherited == Inherited::No && stacks.release(domain) {
                self.stacks.demands[usize::from(domain)].kept = 0;
                self.stacks.leave(domain);
            }
            return;
        }
        let inherited = demand.inherited != Inherited::No;
        let heir = self.stacks.standing.order(demand.heir, self.level[usize::from(demand.heir)]);
        let more_urgent = heir | 1 > self.ranks.of[usize::from(demand.line.head)] | 1;
        if demand.kept == 0 || inherited && !more_urgent {
            return;
        }
        let first = self.next_for_stack(domain);
        if inherited {
            self.stand_back(domain);
        }
        self.unqueue_for_stack(domain, first);
        self.make_ready(first);
        self.bequeath(domain, first, Inherited::Yes);
        self.long = true;
    }

    /// A stack of the domain is for this thread, which is ready.
    fn bequeath(&mut self, domain: u8, heir: u8, inherited: Inherited) {
        let demand = &mut self.stacks.demands[usize::from(domain)];
        (demand.heir, demand.inherited) = (heir, inherited);
        // By this a ready thread's inheritance is found.
        self.records[heir as usize].sem = STACKS | u16::from(domain);
        self.attention += 1;
    }

    /// The heir has yet to run: it waits again, before all that are as urgent; or, if it has run, finds out
    /// whether it must.
    fn stand_back(&mut self, domain: u8) {
        let Demand { heir: t, inherited, .. } = self.stacks.demands[usize::from(domain)];
        self.disinherit(t);
        if inherited == Inherited::Yes {
            self.leave_ready(t, self.level[t as usize]);
            let home = u16::from(self.records[t as usize].home);
            self.set_waiting(t, STACKS | u16::from(domain), home.into());
            self.stand_in_line(domain, t, true);
        }
    }

    /// If the thread is an heir, it is none any longer. What was kept for it goes to another.
    /// Of which domain, and how, if so.
    pub(crate) fn disinherit(&mut self, t: u8) -> Option<(u8, Inherited)> {
        let STACKS..=LAST_STACKS = self.records[t as usize].sem else { return None };
        let domain = self.records[t as usize].sem as u8;
        let demand = &mut self.stacks.demands[usize::from(domain)];
        if demand.heir != t || demand.inherited == Inherited::No {
            return None;
        }
        self.attention -= 1;
        Some((domain, core::mem::replace(&mut demand.inherited, Inherited::No)))
    }

    /// The thread begins to run: it finds what was kept for it.
    fn offer(&mut self, stacks: &impl Stacks, t: u8, now: u64) {
        let Some((domain, inherited)) = self.disinherit(t) else { return };
        if stacks.offer(domain) {
            let demand = &mut self.stacks.demands[usize::from(domain)];
            demand.kept = demand.kept.saturating_sub(1);
            let head = stacks.head(domain);
            let waiters = &mut self.stacks;
            (waiters.offered, waiters.offered_as, waiters.to) = (domain, inherited, t);
            (waiters.head, waiters.since) = (head, now);
            self.attention += 1;
        }
    }

    /// The domain is dying, and nobody waits for it any longer.
    pub(crate) fn abandon_stacks(&mut self, domain: u8) {
        let Demand { waiters, heir, inherited, wanted, .. } = self.stacks.demands[usize::from(domain)];
        if waiters > 0 {
            return;
        }
        if inherited != Inherited::No {
            self.disinherit(heir);
        }
        // Nor is it kept again for whom it was offered to.
        if self.stacks.offered == domain {
            self.stacks.offered = 0;
            self.attention -= 1;
        }
        self.stacks.demands[usize::from(domain)].kept = 0;
        if wanted {
            self.stacks.leave(domain);
        }
    }
}
