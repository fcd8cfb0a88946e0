//! Many bytes at a time: from the page that a writer lends straight into the one that a reader lends, or whole
//! pages that change places.
//!
//! **Problem.** What goes through the ring is copied twice, and more often than it holds so much, writer and
//! reader take turns. **Strategy.** Who comes first sleeps, and leaves an *offer*: the bytes that it lends. Who
//! comes second copies between the two, once, and says how many went. An offer stands for one transfer, so a
//! call ends with what one partner could take or give, as reads and writes do.
//!
//! Of pages that are offered to be *flipped* nothing is copied, if both sides offer some; the VM manager looks
//! at whose they are. To everybody else such an offer is none: they have the one who has made it look again,
//! who then learns that it must copy. So who flips and who does not understand each other.
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
use pebble_abi::words::Asid;

/// Bytes of a client's, in one page, until its call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    pub address: u64,
    pub len: usize,
}

/// Whole pages of a client's, which it would have others for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    pub domain: Asid,
    pub address: u64,
    pub count: u64,
}

/// What somebody who sleeps would have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    Window(Lent),
    Pages(Pages),
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
    /// How many pages have changed places, from the first ones on; 0: they may not, or are gone.
    fn flip(&mut self, one: Pages, other: Pages) -> u64;
    /// Whoever sleeps there looks again.
    fn wake(&mut self, wake: Wake);
    /// Up to 32 bytes.
    fn load(&mut self, from: u64, len: usize) -> [u64; 4];
    fn store(&mut self, to: u64, words: [u64; 4], len: usize);
}

/// Outcome of [`Pipes::read_page`], [`Pipes::write_page`] and [`Pipes::flip`], which counts pages.
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
    /// What is to be read or written next is to be copied.
    Copy(Wake),
    Failed(Error),
}

impl Pipe {
    /// What somebody of that side lends, taken.
    fn offered(&mut self, at: usize, side: Side, offers: &mut impl Offers) -> Option<(Queue, Lent)> {
        let queue = Queue::new(at, side);
        let Some(Offer::Window(lent)) = self.offers[side as usize] else { return None };
        self.offers[side as usize] = None;
        offers.take(queue).then_some((queue, lent))
    }

    /// Leaves an offer, or waits without.
    fn offer(&mut self, at: usize, side: Side, offer: Offer, offers: &mut impl Offers) -> bool {
        let made = offers.make(Queue::new(at, side));
        if made {
            self.offers[side as usize] = Some(offer);
            self.block(at, side);
        }
        made
    }

    /// Who would have pages of that side flipped is told that they are to be copied: it looks again, and finds
    /// the caller waiting.
    pub(crate) fn decline(&mut self, at: usize, side: Side, offers: &mut impl Offers) {
        if let Some(Offer::Pages(_)) = self.offers[side as usize] {
            self.offers[side as usize] = None;
            offers.wake(self.take_waiting(at, side));
        }
    }

    /// With what somebody of the other side offers, or it is offered.
    fn flip(&mut self, at: usize, side: Side, pages: Pages, offers: &mut impl Offers) -> Page {
        let other = side.other();
        let queue = Queue::new(at, other);
        let copy = Page::Copy(Wake::none(at, other));
        // Older bytes come first.
        if !self.ring.is_empty() {
            return copy;
        }
        if let Some(Offer::Pages(theirs)) = self.offers[other as usize] {
            self.offers[other as usize] = None;
            if offers.take(queue) {
                let count = offers.flip(theirs, pages) as usize;
                offers.finish(queue, count);
                let wake = self.take_waiting(at, other);
                return if count == 0 { Page::Copy(wake) } else { Page::Done { count, wake } };
            }
        }
        // Who waits for something else gets it; perhaps besides one whose offer does not stand any more.
        if self.offers[other as usize].is_some() || self.waits(other) {
            return copy;
        }
        if self.ended(other) {
            return match side {
                Side::Read => Page::Done { count: 0, wake: Wake::none(at, other) },
                Side::Write => Page::Failed(Error::NoReader),
            };
        }
        if self.offer(at, side, Offer::Pages(pages), offers) {
            return Page::Offered { queue: Queue::new(at, side), wake: Wake::none(at, other) };
        }
        copy
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
    /// Has pages of the caller's and of the other side change places: those of a writer go, those of a reader
    /// are filled.
    pub fn flip(&mut self, control: u64, pages: Pages, offers: &mut impl Offers) -> Page {
        for side in Side::BOTH {
            if let Some(at) = self.end(control, side) {
                return self.pipes[at].flip(at, side, pages, offers);
            }
        }
        Page::Failed(Error::NotOpen)
    }

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
        pipe.decline(at, Side::Write, offers);
        if pipe.offer(at, Side::Read, Offer::Window(to), offers) {
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
        if from.len > room && pipe.offer(at, Side::Write, Offer::Window(from), offers) {
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
