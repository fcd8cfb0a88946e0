//! Queues of threads.
//!
//! **Problem.** Threads queue in a thousand places, each in one at a time; every operation must take a few
//! instructions, however many wait, and none may allocate.
//!
//! **Strategy.** A queue is known by its ends, and linked both ways through bytes of one table that serves
//! all queues. In an ordered queue, a [`Line`], those of one *rank* stand together, a *group*. Its first
//! member and its last know each other. So whoever comes finds the end of its group by going from group to
//! group, of which there are no more than ranks.
//!
//! **Invariant.** A thread is in at most one queue; from a queue's head, links lead through all of its
//! members to the tail, and back; what precedes the head and what follows the tail means nothing. A queue is
//! never empty: whoever keeps it knows whether there is one. Operations that are told a member trust it:
//! whoever calls them has checked where the thread is. The rank of a thread does not change while it is in an
//! ordered queue.

/// A byte for each thread.
type Bytes = [u8; 256];

/// Who is before and behind each thread in the queue that holds it.
#[repr(C)]
pub struct Links {
    pub next: Bytes,
    prev: Bytes,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Queue {
    pub head: u8,
    pub tail: u8,
}

impl Links {
    pub const fn new() -> Self {
        Links { next: [0; 256], prev: [0; 256] }
    }

    #[inline(always)]
    fn join(&mut self, before: u8, behind: u8) {
        self.next[before as usize] = behind;
        self.prev[behind as usize] = before;
    }
}

impl Default for Links {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    /// `t` alone.
    #[inline(always)]
    pub const fn of(t: u8) -> Self {
        Self { head: t, tail: t }
    }

    /// Has it only one member?
    #[inline(always)]
    pub const fn is_single(self) -> bool {
        self.head == self.tail
    }

    #[inline(always)]
    pub fn push_back(&mut self, links: &mut Links, t: u8) {
        links.join(self.tail, t);
        self.tail = t;
    }

    #[inline(always)]
    pub fn push_front(&mut self, links: &mut Links, t: u8) {
        links.join(t, self.head);
        self.head = t;
    }

    /// Takes the head out; it is not the only member.
    #[inline(always)]
    pub fn drop_head(&mut self, links: &Links) {
        self.head = links.next[self.head as usize];
    }

    /// Takes a member out, wherever it is; it is not the only one.
    pub fn remove(&mut self, links: &mut Links, t: u8) {
        let (before, behind) = (links.prev[t as usize], links.next[t as usize]);
        if t == self.head {
            self.head = behind;
        } else if t == self.tail {
            self.tail = before;
        } else {
            links.join(before, behind);
        }
    }

    /// Puts `t` before a member.
    fn insert_before(&mut self, links: &mut Links, t: u8, member: u8) {
        if member == self.head {
            return self.push_front(links, t);
        }
        links.join(links.prev[member as usize], t);
        links.join(t, member);
    }

    /// Puts `t` before the first member of which `goes_before` is true, or behind all. Walks: for queues that
    /// are kept short.
    pub fn insert_where(&mut self, links: &mut Links, t: u8, goes_before: impl Fn(u8) -> bool) {
        let mut member = self.head;
        while !goes_before(member) {
            if member == self.tail {
                return self.push_back(links, t);
            }
            member = links.next[member as usize];
        }
        self.insert_before(links, t, member);
    }
}

/// What is known of threads in ordered queues.
#[repr(C)]
pub struct Ranks {
    /// Each thread's rank, which is set before it comes into a line. The lowest stands first.
    pub of: Bytes,
    /// The other end of the group of which the thread is one end.
    ends: Bytes,
}

impl Ranks {
    pub const fn new() -> Self {
        Ranks { of: [0; 256], ends: [0; 256] }
    }

    fn pair(&mut self, first: u8, last: u8) {
        self.ends[first as usize] = last;
        self.ends[last as usize] = first;
    }

    /// The last of the group that this thread begins.
    pub fn last(&self, first: u8) -> u8 {
        self.ends[first as usize]
    }
}

impl Default for Ranks {
    fn default() -> Self {
        Self::new()
    }
}

/// A queue in order of ranks.
pub struct Line<'a> {
    pub queue: &'a mut Queue,
    pub links: &'a mut Links,
    pub ranks: &'a mut Ranks,
}

impl Line<'_> {
    fn rank(&self, t: u8) -> u8 {
        self.ranks.of[t as usize]
    }

    /// The first member of the second group, and its rank.
    pub fn second_group(&self) -> Option<(u8, u8)> {
        // Who is alone may have no group yet.
        if self.queue.is_single() {
            return None;
        }
        let last = self.ranks.last(self.queue.head);
        let second = self.links.next[last as usize];
        (last != self.queue.tail).then(|| (second, self.rank(second)))
    }

    /// The first member of the first group whose rank is at least that, unless all are below.
    fn find(&mut self, rank: u8) -> Option<u8> {
        if self.queue.is_single() {
            self.ranks.pair(self.queue.head, self.queue.head);
        }
        let tail = self.queue.tail;
        if self.rank(tail) <= rank {
            return (self.rank(tail) == rank).then(|| self.ranks.ends[tail as usize]);
        }
        let mut first = self.queue.head;
        while self.rank(first) < rank {
            first = self.links.next[self.ranks.last(first) as usize];
        }
        Some(first)
    }

    /// Puts `t` behind all whose rank is at most its own, or, if `in_front`, before all whose rank is at
    /// least that.
    #[inline(never)]
    pub fn insert(&mut self, t: u8, in_front: bool) {
        let rank = self.rank(t);
        let Some(first) = self.find(rank) else {
            self.queue.push_back(self.links, t);
            return self.ranks.pair(t, t);
        };
        let its = self.rank(first) == rank;
        let last = if its { self.ranks.last(first) } else { t };
        if !its || in_front {
            self.queue.insert_before(self.links, t, first);
            return self.ranks.pair(t, last);
        }
        if last == self.queue.tail {
            self.queue.push_back(self.links, t);
        } else {
            let behind = self.links.next[last as usize];
            self.links.join(last, t);
            self.links.join(t, behind);
        }
        self.ranks.pair(first, t);
    }

    /// Takes a member out; it is not the only one.
    #[inline(never)]
    pub fn remove(&mut self, t: u8) {
        let (before, behind) = (self.links.prev[t as usize], self.links.next[t as usize]);
        let other = self.ranks.ends[t as usize];
        let is_first = t == self.queue.head || self.rank(before) != self.rank(t);
        let is_last = t == self.queue.tail || self.rank(behind) != self.rank(t);
        match (is_first, is_last) {
            (true, false) => self.ranks.pair(behind, other),
            (false, true) => self.ranks.pair(other, before),
            _ => {}
        }
        self.queue.remove(self.links, t);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn members(queue: Option<Queue>, links: &Links) -> Vec<u8> {
        let Some(queue) = queue else { return Vec::new() };
        let mut all = Vec::from([queue.head]);
        while *all.last().unwrap() != queue.tail {
            let last = *all.last().unwrap();
            all.push(links.next[last as usize]);
            assert_eq!(links.prev[*all.last().unwrap() as usize], last);
        }
        all
    }

    proptest! {
        /// Against a plain list.
        #[test]
        fn lines_are_in_order(ops in prop::collection::vec((0..4u8, any::<u8>(), 0..5u8), 1..400)) {
            let (mut links, mut ranks) = (Links::new(), Ranks::new());
            let (mut queue, mut model) = (None::<Queue>, Vec::<u8>::new());
            for (op, t, rank) in ops {
                let there = model.iter().position(|other| *other == t);
                match (there, queue.as_mut()) {
                    (Some(at), Some(queue)) if model.len() > 1 => {
                        Line { queue, links: &mut links, ranks: &mut ranks }.remove(t);
                        model.remove(at);
                    }
                    (Some(_), _) => {
                        (queue, model) = (None, Vec::new());
                    }
                    (None, None) => {
                        ranks.of[t as usize] = rank;
                        queue = Some(Queue::of(t));
                        model.push(t);
                    }
                    (None, Some(queue)) => {
                        ranks.of[t as usize] = rank;
                        let in_front = op == 0;
                        Line { queue, links: &mut links, ranks: &mut ranks }.insert(t, in_front);
                        let behind = |other: &u8| {
                            let other = ranks.of[*other as usize];
                            if in_front { other >= rank } else { other > rank }
                        };
                        let at = model.iter().position(behind).unwrap_or(model.len());
                        model.insert(at, t);
                    }
                }
                prop_assert_eq!(members(queue, &links), model.clone());
                if let Some(queue) = queue.as_mut() {
                    let found = Line { queue, links: &mut links, ranks: &mut ranks }.second_group();
                    let of = |t: u8| ranks.of[usize::from(t)];
                    let second = model.iter().find(|t| of(**t) != of(model[0]));
                    prop_assert_eq!(found, second.map(|t| (*t, of(*t))));
                }
            }
        }
    }
}
