//! Many bytes at a time: from the page that a writer lends straight into the one that a reader lends.
//!
//! **Problem.** What goes through the ring is copied twice, and more often than it holds so much, writer and
//! reader take turns. **Strategy.** Who comes first sleeps, and leaves an *offer*: the bytes that it lends. Who
//! comes second copies between the two, once, and says how many went. An offer stands for one transfer, so a
//! call ends with what one partner could take or give, as reads and writes do.
//!
//! **Invariants.**
//! * An offer stands only while its owner sleeps in the call that has lent the page. The owner withdraws it
//!   without the lock, when it goes on for any other reason; so whoever uses it *takes* it first, and then the
//!   owner waits for the end of the copy ([`Offers`]).
//! * The ring is older than an offer of a writer. Bytes of one writer stay in order: whoever sleeps has not
//!   written anything else meanwhile.
//! * A pipe that gets its place anew has no offer.

use crate::pipes::{Error, Pipe, Pipes, Queue, Side, Wake};
use pebble_abi::call::IO_BYTES;

/// Bytes of a client's, in one page, until its call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    pub address: u64,
    pub len: usize,
}

/// The offers that stand, one a queue, and the memory that they are about.
pub trait Offers {
    /// Whether the caller may leave an offer in the queue; then it sleeps there.
    fn make(&mut self, queue: Queue) -> bool;
    /// Whether the offer in the queue still stands: nobody withdraws it any more.
    fn take(&mut self, queue: Queue) -> bool;
    /// So many bytes of the offer that was taken are used, and it stands no more.
    fn finish(&mut self, queue: Queue, count: usize);
    fn copy(&mut self, from: u64, to: u64, len: usize);
    /// Up to 32 bytes.
    fn load(&mut self, from: u64, len: usize) -> [u64; 4];
    fn store(&mut self, to: u64, words: [u64; 4], len: usize);
}

/// Outcome of [`Pipes::read_page`] and [`Pipes::write_page`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Done {
        count: usize,
        wake: Wake,
    },
    /// The caller has left an offer, and sleeps in the queue.
    Offered {
        queue: Queue,
        wake: Wake,
    },
    Block(Queue),
    Failed(Error),
}

impl Pipe {
    /// What somebody of that side offers, taken.
    fn offered(&mut self, at: usize, side: Side, offers: &mut impl Offers) -> Option<(Queue, Lent)> {
        let queue = Queue::new(at, side);
        self.offers[side as usize].take().filter(|_| offers.take(queue)).map(|lent| (queue, lent))
    }

    /// Leaves an offer, or waits without.
    fn offer(&mut self, at: usize, side: Side, lent: Lent, offers: &mut impl Offers) -> bool {
        let made = offers.make(Queue::new(at, side));
        if made {
            self.offers[side as usize] = Some(lent);
            self.block(at, side);
        }
        made
    }

    /// Puts what a writer offers into the ring, which is empty, as far as it goes: for those who read little.
    pub(crate) fn pull(&mut self, at: usize, offers: &mut impl Offers) -> bool {
        let Some((queue, from)) = self.offered(at, Side::Write, offers) else { return false };
        let count = self.fill(from, offers);
        offers.finish(queue, count);
        true
    }

    /// As much as the ring has room for.
    fn fill(&mut self, from: Lent, offers: &mut impl Offers) -> usize {
        let most = from.len.min(self.ring.room());
        for done in (0..most).step_by(IO_BYTES) {
            let len = (most - done).min(IO_BYTES);
            self.ring.put(offers.load(from.address + done as u64, len), len);
        }
        most
    }

    /// As much as is there.
    fn drain(&mut self, to: Lent, offers: &mut impl Offers) -> usize {
        let most = to.len.min(self.ring.len());
        for done in (0..most).step_by(IO_BYTES) {
            let (len, words) = self.ring.get(most - done);
            offers.store(to.address + done as u64, words, len);
        }
        most
    }
}

impl Pipes {
    /// Fills what the caller lends, as far as there are bytes; once there are some.
    pub fn read_page(&mut self, control: u64, to: Lent, offers: &mut impl Offers) -> Page {
        let Some(at) = self.end(control, Side::Read) else { return Page::Failed(Error::NotOpen) };
        let pipe = &mut self.pipes[at];
        if to.len == 0 {
            return Page::Done { count: 0, wake: Wake::none(at, Side::Write) };
        }
        if !pipe.ring.is_empty() {
            let count = pipe.drain(to, offers);
            return Page::Done { count, wake: pipe.writers_that_fit(at) };
        }
        if let Some((queue, from)) = pipe.offered(at, Side::Write, offers) {
            let count = from.len.min(to.len);
            offers.copy(from.address, to.address, count);
            offers.finish(queue, count);
            return Page::Done { count, wake: pipe.take_waiting(at, Side::Write) };
        }
        if pipe.ended(Side::Write) {
            return Page::Done { count: 0, wake: Wake::none(at, Side::Write) };
        }
        if pipe.offer(at, Side::Read, to, offers) {
            return Page::Offered { queue: Queue::new(at, Side::Read), wake: Wake::none(at, Side::Write) };
        }
        Page::Block(pipe.block(at, Side::Read))
    }

    /// Takes of what the caller lends as much as goes somewhere: all, if the ring has room for it.
    pub fn write_page(&mut self, control: u64, from: Lent, offers: &mut impl Offers) -> Page {
        let Some(at) = self.end(control, Side::Write) else { return Page::Failed(Error::NotOpen) };
        let pipe = &mut self.pipes[at];
        if pipe.ended(Side::Read) {
            return Page::Failed(Error::NoReader);
        }
        if from.len == 0 {
            return Page::Done { count: 0, wake: Wake::none(at, Side::Read) };
        }
        if pipe.ring.is_empty()
            && let Some((queue, to)) = pipe.offered(at, Side::Read, offers)
        {
            let count = from.len.min(to.len);
            offers.copy(from.address, to.address, count);
            offers.finish(queue, count);
            return Page::Done { count, wake: pipe.take_waiting(at, Side::Read) };
        }
        let room = pipe.ring.room();
        if from.len > room && pipe.offer(at, Side::Write, from, offers) {
            let queue = Queue::new(at, Side::Write);
            return Page::Offered { queue, wake: pipe.take_waiting(at, Side::Read) };
        }
        let least = from.len.min(IO_BYTES);
        if room < least {
            return Page::Block(pipe.block_writer(at, least));
        }
        let count = pipe.fill(from, offers);
        Page::Done { count, wake: pipe.take_waiting(at, Side::Read) }
    }
}
