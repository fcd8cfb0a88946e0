//! Queues of threads.
//!
//! **Problem.** Threads queue in a thousand places, each in one at a time; all operations of the hot paths must
//! take a few instructions, and none may allocate.
//!
//! **Strategy.** A queue is singly linked and known by its ends, so that appending, taking the head and putting
//! at the head are O(1). One array of links, a byte a thread, serves all queues. Removal from the middle walks;
//! only aborts and changes of priority do it.
//!
//! **Invariant.** A thread is in at most one queue; from a queue's head, links lead through all of its members to
//! the tail, whose own link means nothing. A queue is never empty: whoever keeps it knows whether there is one.
//! Operations that are told a member trust it: whoever calls them has checked the thread's place.

/// `links[t]` is the thread after `t` in the queue that holds it.
pub type Links = [u8; 256];

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Queue {
    pub head: u8,
    pub tail: u8,
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
        links[self.tail as usize] = t;
        self.tail = t;
    }

    #[inline(always)]
    pub fn push_front(&mut self, links: &mut Links, t: u8) {
        links[t as usize] = self.head;
        self.head = t;
    }

    /// Puts `t` behind all whose level is at most its own.
    #[inline(always)]
    pub fn insert(&mut self, links: &mut Links, level: &[u8; 256], t: u8) {
        if level[self.tail as usize] <= level[t as usize] {
            self.push_back(links, t);
        } else {
            self.insert_before_tail(links, level, t);
        }
    }

    /// Puts `t` before the first member that is less urgent; the tail is one.
    #[cold]
    fn insert_before_tail(&mut self, links: &mut Links, level: &[u8; 256], t: u8) {
        if level[self.head as usize] > level[t as usize] {
            return self.push_front(links, t);
        }
        let mut before = self.head;
        while level[links[before as usize] as usize] <= level[t as usize] {
            before = links[before as usize];
        }
        links[t as usize] = links[before as usize];
        links[before as usize] = t;
    }

    /// Puts `t` before the first member of which `goes_before` is true, or behind all.
    pub fn insert_before(&mut self, links: &mut Links, t: u8, goes_before: impl Fn(u8) -> bool) {
        if goes_before(self.head) {
            return self.push_front(links, t);
        }
        let mut before = self.head;
        while before != self.tail && !goes_before(links[before as usize]) {
            before = links[before as usize];
        }
        if before == self.tail {
            return self.push_back(links, t);
        }
        links[t as usize] = links[before as usize];
        links[before as usize] = t;
    }

    /// Takes the head out; it is not the only member.
    #[inline(always)]
    pub fn drop_head(&mut self, links: &Links) {
        self.head = links[self.head as usize];
    }

    /// Takes a member out, wherever it is; it is not the only one.
    pub fn remove(&mut self, links: &mut Links, t: u8) {
        if t == self.head {
            return self.drop_head(links);
        }
        let mut before = self.head;
        while links[before as usize] != t {
            before = links[before as usize];
        }
        links[before as usize] = links[t as usize];
        if t == self.tail {
            self.tail = before;
        }
    }

    /// Number of members; walks.
    pub fn len(self, links: &Links) -> usize {
        let (mut at, mut n) = (self.head, 1);
        while at != self.tail {
            (at, n) = (links[at as usize], n + 1);
        }
        n
    }
}
