//! Queues of threads.
//!
//! **Problem.** Threads queue in a thousand places, each in one at a time; all operations of the hot paths must
//! take a few instructions, and none may allocate.
//!
//! **Strategy.** A queue is circular and singly linked, and known by its tail, from which the head is one step:
//! appending, taking the head, putting at the head and turning the ring are all O(1). One array of links, a byte
//! a thread, serves all rings. Removal from the middle walks; only aborts and changes of priority do it.
//!
//! **Invariant.** A thread is in at most one ring; from a ring's tail, links lead through all of its members and
//! back. Operations that are told a member trust it: whoever calls them has checked the thread's place.

/// `links[t]` is the thread after `t` in the ring that holds it.
pub type Links = [u8; 256];

/// A queue. Two bytes, so that a hot path that knows it is not empty touches one.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Ring {
    tail: u8,
    used: bool,
}

impl Ring {
    pub const EMPTY: Self = Self { tail: 0, used: false };

    #[inline(always)]
    fn tail(self) -> Option<u8> {
        if self.used { Some(self.tail) } else { None }
    }

    #[inline(always)]
    pub fn clear(&mut self) {
        self.used = false;
    }

    /// The head of a ring that is known not to be empty.
    #[inline(always)]
    pub fn head_unchecked(self, links: &Links) -> u8 {
        links[self.tail as usize]
    }

    /// Appends; true if the ring was empty.
    #[inline(always)]
    pub fn push_back(&mut self, links: &mut Links, t: u8) -> bool {
        let was_empty = !self.used;
        if was_empty {
            links[t as usize] = t;
            self.used = true;
        } else {
            links[t as usize] = links[self.tail as usize];
            links[self.tail as usize] = t;
        }
        self.tail = t;
        was_empty
    }

    pub fn push_front(&mut self, links: &mut Links, t: u8) {
        match self.tail() {
            Some(tail) => {
                links[t as usize] = links[tail as usize];
                links[tail as usize] = t;
            }
            None => {
                self.push_back(links, t);
            }
        }
    }

    /// Puts `t` behind all whose level is at most its own.
    #[inline(always)]
    pub fn insert(&mut self, links: &mut Links, level: &[u8; 256], t: u8) {
        match self.tail() {
            Some(tail) if level[tail as usize] > level[t as usize] => insert_before(links, level, tail, t),
            _ => {
                self.push_back(links, t);
            }
        }
    }

    #[inline(always)]
    pub fn pop_front(&mut self, links: &mut Links) -> Option<u8> {
        let tail = self.tail()?;
        let head = links[tail as usize];
        if head == tail {
            self.used = false;
        } else {
            links[tail as usize] = links[head as usize];
        }
        Some(head)
    }

    /// Takes `head`, known to be the head, out and returns the next head. `None`, and nothing has changed,
    /// if it is alone.
    #[inline(always)]
    pub fn drop_head(&mut self, links: &mut Links, head: u8) -> Option<u8> {
        let tail = self.tail;
        if tail == head {
            return None;
        }
        let next = links[head as usize];
        links[tail as usize] = next;
        Some(next)
    }

    /// Makes `head`, known to be the head, the tail.
    #[inline(always)]
    pub fn turn(&mut self, head: u8) {
        self.tail = head;
    }

    /// Takes a member out, wherever it is; true if the ring is empty now.
    pub fn remove(&mut self, links: &mut Links, t: u8) -> bool {
        let next = links[t as usize];
        if next == t {
            self.used = false;
            return true;
        }
        let mut before = next;
        while links[before as usize] != t {
            before = links[before as usize];
        }
        links[before as usize] = next;
        if self.tail == t {
            self.tail = before;
        }
        false
    }

    /// Number of members; walks.
    pub fn len(self, links: &Links) -> usize {
        let Some(tail) = self.tail() else { return 0 };
        let (mut at, mut n) = (links[tail as usize], 1);
        while at != tail {
            (at, n) = (links[at as usize], n + 1);
        }
        n
    }
}

/// Puts `t` before the first member that is less urgent; the tail is one.
#[cold]
fn insert_before(links: &mut Links, level: &[u8; 256], tail: u8, t: u8) {
    let mut before = tail;
    while level[links[before as usize] as usize] <= level[t as usize] {
        before = links[before as usize];
    }
    links[t as usize] = links[before as usize];
    links[before as usize] = t;
}
