//! The state machine. See the head of the crate for strategy and the life of a pipe.
//!
//! Invariants:
//! * `ends[s]` of a pipe is the number of open ends of side `s` that name it; a pipe in use by an open end is
//!   not freed.
//! * A control word names an end by index and generation. Ends are reused, generations are not (in 2^54
//!   reuses), so a thread that was blocked while its end was closed finds `EBADF`, not
//!   somebody else's pipe.
//! * A waiter is counted in `waiting` of its queue, under the lock, before it sleeps; whoever makes its wait
//!   pointless takes the whole count and wakes that many. Counted waiters and V together are never fewer than
//!   the threads that sleep, even when one of them gives up after it was counted out; so no wake-up is lost.
//! * Of those that wait elsewhere one mark is kept beside the count, taken and told with it.
//! * Readers wait only while the ring is empty; writers only while it has less room than each of them needs
//!   (`need`).
//! * All-zero bytes are a server without pipes.

use pebble_abi::call::IO_BYTES;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::MAX_DOMAINS;
use pebble_abi::share::{self, Share};
use pebble_abi::sys::{READY_END, READY_READ, READY_WRITE};
use pebble_abi::words::Asid;

use crate::pages::{Offer, Offers};
use crate::ring::Ring;
use crate::token::Tokens;

pub mod state;

/// Pipes at once.
pub const PIPES: usize = share::PIPES.all;
/// Of these, created by one domain.
pub const PIPES_PER_DOMAIN: u8 = 16;
/// Wrong tokens that one domain may come with: times of creation can be guessed well enough to try the rest.
const GUESSES: u8 = 64;
const ENDS: usize = share::ENDS.all;
const ENDS_PER_DOMAIN: u8 = 48;
/// Semaphores that the component must have.
pub const QUEUES: usize = 2 * PIPES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Read,
    Write,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Read, Side::Write];

    pub const fn other(self) -> Side {
        match self {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
        }
    }
}

/// The waiters of one side of one pipe: a number below [`QUEUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(u8);

impl Queue {
    pub(crate) const fn new(pipe: usize, side: Side) -> Self {
        Queue((pipe * 2 + side as usize) as u8)
    }

    /// Those of both sides of the pipe that has, or had, this token.
    pub const fn of(token: u64) -> [Queue; 2] {
        let pipe = token as usize % PIPES;
        [Queue::new(pipe, Side::Read), Queue::new(pipe, Side::Write)]
    }

    /// The inverse of [`index`](Self::index).
    pub const fn numbered(index: u64) -> Self {
        Queue((index % QUEUES as u64) as u8)
    }

    /// Which of the component's semaphores it is.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who sleeps in `queue` gets a V, `count & !PARKED` of them; with [`PARKED`], there are others, who wait
/// elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    pub queue: Queue,
    pub count: u16,
}

/// In a count of waiters: besides them somebody waits who holds no stack of the component.
pub const PARKED: u16 = 1 << 15;

impl Wake {
    pub(crate) const fn none(pipe: usize, side: Side) -> Self {
        Wake { queue: Queue::new(pipe, side), count: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes in the words; none: the end of the data, or none were asked for.
    Data {
        count: usize,
        words: [u64; 4],
        wake: Wake,
    },
    Block(Queue),
    Failed(Error),
}

/// Count of a [`Pipes::read_word`] whose caller waits.
pub const BLOCK: i64 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Done { count: usize, wake: Wake },
    Block(Queue),
    Failed(Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The end was closed, or it is one of the other side.
    NotOpen,
    /// No reader is left, or none can come.
    NoReader,
    /// No pipe has this token, or its creator has abandoned it.
    NoPipe,
    /// This domain, or all together, have as many pipes or ends as there can be.
    Limit,
    /// The domain's family has its share, or all families have theirs.
    Share,
}

impl Error {
    pub const fn errno(self) -> Errno {
        match self {
            Error::NotOpen => errno::EBADF,
            Error::NoReader => errno::EPIPE,
            Error::NoPipe => errno::ENOENT,
            Error::Limit => errno::EAGAIN,
            Error::Share => errno::EPIPES,
        }
    }
}

pub(crate) struct Pipe {
    pub(crate) ring: Ring,
    /// 0: free.
    token: u64,
    /// Open ends, by side.
    ends: [u16; 2],
    /// Threads that sleep in each queue, and [`PARKED`].
    waiting: [u16; 2],
    /// Whether a side was open at any time.
    had: [bool; 2],
    /// Whether its creator has given up a side: nobody opens it from then on.
    abandoned: [bool; 2],
    creator: u16,
    /// The creator's, which may be long dead.
    family: u16,
    /// Fewest bytes that a waiting writer has.
    need: u8,
    /// What somebody who sleeps in each queue offers, unless it is withdrawn.
    pub(crate) offers: [Option<Offer>; 2],
}

impl Pipe {
    const FREE: Pipe = Pipe {
        ring: Ring::new(),
        token: 0,
        ends: [0; 2],
        waiting: [0; 2],
        had: [false; 2],
        abandoned: [false; 2],
        creator: 0,
        family: 0,
        need: 0,
        offers: [None; 2],
    };

    /// Nobody has the side open, and somebody had or nobody can.
    pub(crate) fn ended(&self, side: Side) -> bool {
        self.ends[side as usize] == 0 && (self.had[side as usize] || self.abandoned[side as usize])
    }

    pub(crate) fn take_waiting(&mut self, pipe: usize, side: Side) -> Wake {
        Wake { queue: Queue::new(pipe, side), count: core::mem::take(&mut self.waiting[side as usize]) }
    }

    pub(crate) fn waits(&self, side: Side) -> bool {
        self.waiting[side as usize] != 0
    }

    pub(crate) fn block(&mut self, pipe: usize, side: Side) -> Queue {
        self.waiting[side as usize] += 1;
        Queue::new(pipe, side)
    }

    /// A writer waits for room for so many bytes.
    pub(crate) fn block_writer(&mut self, pipe: usize, need: usize) -> Queue {
        let alone = self.waiting[Side::Write as usize] == 0;
        self.need = if alone { need as u8 } else { self.need.min(need as u8) };
        self.block(pipe, Side::Write)
    }

    /// All that wait to write, if there is room for one of them.
    pub(crate) fn writers_that_fit(&mut self, pipe: usize) -> Wake {
        let fit = self.waiting[Side::Write as usize] != 0 && self.ring.room() >= usize::from(self.need);
        if fit { self.take_waiting(pipe, Side::Write) } else { Wake::none(pipe, Side::Write) }
    }
}

#[derive(Clone, Copy)]
struct End {
    /// The control word: index, the bit of the side while it is open, generation.
    control: u64,
    asid: u16,
    /// Of the domain.
    family: u16,
    pipe: u8,
}

impl End {
    /// The bit of a side in a control word, above the index.
    const fn bit(side: Side) -> u64 {
        (ENDS as u64) << side as u64
    }
    const SIDES: u64 = Self::bit(Side::Read) | Self::bit(Side::Write);
    const GENERATION: u64 = Self::SIDES + ENDS as u64;

    const fn is_open(&self) -> bool {
        self.control & Self::SIDES != 0
    }
}

pub struct Pipes {
    pub(crate) pipes: [Pipe; PIPES],
    ends: [End; ENDS],
    /// By domain.
    created: [u8; MAX_DOMAINS],
    opened: [u8; MAX_DOMAINS],
    /// With whom each shares ([`pebble_abi::share`]).
    family: [u16; MAX_DOMAINS],
    /// How often each has come with a token that is no pipe's.
    missed: [u8; MAX_DOMAINS],
    tokens: Tokens,
}

impl Default for Pipes {
    fn default() -> Self {
        Self::new()
    }
}

impl Pipes {
    pub const fn new() -> Self {
        Pipes {
            pipes: [const { Pipe::FREE }; PIPES],
            ends: [End { control: 0, asid: 0, family: 0, pipe: 0 }; ENDS],
            created: [0; MAX_DOMAINS],
            opened: [0; MAX_DOMAINS],
            family: [0; MAX_DOMAINS],
            missed: [0; MAX_DOMAINS],
            tokens: Tokens::new(),
        }
    }

    /// To be said before the domain creates or opens, whose numbers come again.
    pub fn belongs(&mut self, asid: Asid, family: u16) {
        if let Some(its) = self.family.get_mut(usize::from(asid.number())) {
            *its = family;
        }
    }

    /// The family of a domain that may have one more of what these families have.
    fn grant(&self, asid: u16, share: &Share, having: impl Iterator<Item = u16>) -> Result<u16, Error> {
        let family = *self.family.get(usize::from(asid)).ok_or(Error::Limit)?;
        let (mut its, mut used) = (0, 0);
        for other in having {
            (its, used) = (its + usize::from(other == family), used + 1);
        }
        share.grant(family, its, used, 1).map(|()| family).map_err(|_| Error::Share)
    }

    /// A new pipe of domain `asid`. `entropy`, for instance the time, makes its token harder to guess.
    pub fn create(&mut self, asid: Asid, entropy: u64) -> Result<u64, Error> {
        let asid = asid.number();
        let made = self.pipes.iter().filter(|p| p.token != 0).map(|p| p.family);
        let family = self.grant(asid, &share::PIPES, made)?;
        let created = self.created.get_mut(usize::from(asid)).ok_or(Error::Limit)?;
        if *created >= PIPES_PER_DOMAIN {
            return Err(Error::Limit);
        }
        let free = self.pipes.iter().position(|p| p.token == 0).ok_or(Error::Limit)?;
        *created += 1;
        self.tokens.stir(entropy);
        // Zero, which says "free", comes up once in 2^57 times at most.
        let token = loop {
            match self.tokens.next(free) {
                0 => {}
                token => break token,
            }
        };
        let pipe = &mut self.pipes[free];
        pipe.ring.clear();
        pipe.token = token;
        pipe.ends = [0; 2];
        pipe.had = [false; 2];
        pipe.abandoned = [false; 2];
        pipe.offers = [None; 2];
        (pipe.creator, pipe.family) = (asid, family);
        Ok(token)
    }

    /// Opens one end for domain `asid`; returns the control word.
    pub fn open(&mut self, asid: Asid, token: u64, side: Side) -> Result<u64, Error> {
        let asid = asid.number();
        let found = self.find(token);
        let missed = self.missed.get_mut(usize::from(asid)).ok_or(Error::Limit)?;
        if *missed >= GUESSES {
            return Err(Error::NoPipe);
        }
        let at = found.inspect_err(|_| *missed += 1)?;
        if self.pipes[at].abandoned[side as usize] {
            return Err(Error::NoPipe);
        }
        let open = self.ends.iter().filter(|e| e.is_open()).map(|e| e.family);
        let family = self.grant(asid, &share::ENDS, open)?;
        let opened = self.opened.get_mut(usize::from(asid)).ok_or(Error::Limit)?;
        if *opened >= ENDS_PER_DOMAIN {
            return Err(Error::Limit);
        }
        let index = self.ends.iter().position(|e| !e.is_open()).ok_or(Error::Limit)?;
        *opened += 1;
        let generation = (self.ends[index].control & !(End::GENERATION - 1)).wrapping_add(End::GENERATION);
        let control = generation | End::bit(side) | index as u64;
        self.ends[index] = End { control, asid, family, pipe: at as u8 };
        self.pipes[at].ends[side as usize] += 1;
        self.pipes[at].had[side as usize] = true;
        Ok(control)
    }

    /// Takes up to `max` bytes, 32 at most, as soon as there are any.
    #[inline]
    pub fn read(&mut self, control: u64, max: u64, offers: &mut impl Offers) -> Read {
        let Some(at) = self.end(control, Side::Read) else { return Read::Failed(Error::NotOpen) };
        let pipe = &mut self.pipes[at];
        let pulled = pipe.ring.is_empty() && max != 0 && pipe.pull(at, offers);
        if pipe.ring.is_empty() && max != 0 && !pipe.ended(Side::Write) {
            pipe.decline(at, Side::Write, offers);
            return Read::Block(pipe.block(at, Side::Read));
        }
        let (count, words) = pipe.ring.get(max.min(IO_BYTES as u64) as usize);
        // Whoever has made the offer does not wait for room.
        let wake = if pulled { pipe.take_waiting(at, Side::Write) } else { pipe.writers_that_fit(at) };
        Read::Data { count, words, wake }
    }

    /// Puts in the first 32 of `count` bytes, or blocks.
    #[inline]
    pub fn write(&mut self, control: u64, count: u64, words: [u64; 4]) -> Write {
        let Some(at) = self.end(control, Side::Write) else { return Write::Failed(Error::NotOpen) };
        let count = count.min(IO_BYTES as u64) as usize;
        let pipe = &mut self.pipes[at];
        if pipe.ended(Side::Read) {
            return Write::Failed(Error::NoReader);
        }
        if pipe.ring.room() < count {
            return Write::Block(pipe.block_writer(at, count));
        }
        pipe.ring.put(words, count);
        let wake = if count == 0 { Wake::none(at, Side::Read) } else { pipe.take_waiting(at, Side::Read) };
        Write::Done { count, wake }
    }

    /// Which calls at this end would not wait now: the `READY` bits. A write would of less than 33 bytes.
    pub fn ready(&self, control: u64) -> Result<u64, Error> {
        for side in Side::BOTH {
            let Some(at) = self.end(control, side) else { continue };
            let pipe = &self.pipes[at];
            let (there, bit, other) = match side {
                Side::Read => {
                    let some = !pipe.ring.is_empty() || pipe.offers[Side::Write as usize].is_some();
                    (some, READY_READ, Side::Write)
                }
                Side::Write => (pipe.ring.room() >= IO_BYTES, READY_WRITE, Side::Read),
            };
            let end = pipe.ended(other);
            return Ok(u64::from(there || end) * bit | u64::from(end) * READY_END);
        }
        Err(Error::NotOpen)
    }

    /// The usual small [`read`](Self::read), in few instructions: all there is fits one word and nobody waits
    /// to write, or there is nothing yet, and the caller may sleep. Two words, which a function returns in
    /// registers: count and bytes; [`BLOCK`] and the number of the queue; or 0, and nothing is done.
    #[inline]
    pub fn read_word(&mut self, control: u64, max: u64, may_sleep: impl FnOnce() -> bool) -> (i64, u64) {
        // Any word would do; this one is in its register.
        let nothing = (0, max);
        let Some(at) = self.end(control, Side::Read) else { return nothing };
        let pipe = &mut self.pipes[at];
        if pipe.waiting[Side::Write as usize] != 0 {
            return nothing;
        }
        if pipe.ring.is_empty() && max != 0 && pipe.ends[Side::Write as usize] != 0 && may_sleep() {
            return (BLOCK, pipe.block(at, Side::Read).index() as u64);
        }
        pipe.ring.get_word(max).map_or(nothing, |(count, word)| (count as i64, word))
    }

    /// The usual small [`write`](Self::write), in few instructions: 1 to 8 bytes into an empty pipe. None:
    /// nothing is done.
    #[inline]
    pub fn write_word(&mut self, control: u64, count: u64, word: u64) -> Option<Wake> {
        let at = self.end(control, Side::Write)?;
        let pipe = &mut self.pipes[at];
        let done = (1..=8).contains(&count)
            && pipe.ends[Side::Read as usize] != 0
            && pipe.ring.put_word(word, count as usize);
        done.then(|| pipe.take_waiting(at, Side::Read))
    }

    /// A wait in `queue` was cut short.
    pub fn give_up(&mut self, queue: Queue) {
        let waiting = self.waiting(queue);
        *waiting -= u16::from(*waiting & !PARKED != 0);
    }

    /// The caller that has just been told to block in `queue` does not sleep there, but waits elsewhere.
    pub fn park(&mut self, queue: Queue) {
        let waiting = self.waiting(queue);
        *waiting = (*waiting - 1) | PARKED;
    }

    fn waiting(&mut self, queue: Queue) -> &mut u16 {
        &mut self.pipes[queue.index() / 2].waiting[queue.index() % 2]
    }

    /// Closes the end. Whoever waits at either side looks again.
    pub fn close(&mut self, control: u64, wake: &mut impl FnMut(Wake)) -> Result<(), Error> {
        let index = self.index(control).ok_or(Error::NotOpen)?;
        self.close_end(index, wake);
        Ok(())
    }

    /// The creator knows that nobody will open these sides any more, for instance because the program that
    /// should have is dead.
    pub fn abandon(
        &mut self,
        asid: Asid,
        token: u64,
        sides: &[Side],
        wake: &mut impl FnMut(Wake),
    ) -> Result<(), Error> {
        let at = self.find(token)?;
        // Others need not learn that it is one.
        if self.pipes[at].creator != asid.number() {
            return Err(Error::NoPipe);
        }
        for side in sides {
            self.pipes[at].abandoned[*side as usize] = true;
        }
        self.settle(at, wake);
        Ok(())
    }

    /// The domain is dead: closes its ends and abandons its pipes.
    pub fn gone(&mut self, asid: Asid, wake: &mut impl FnMut(Wake)) {
        let asid = asid.number();
        let Some(missed) = self.missed.get_mut(usize::from(asid)) else { return };
        *missed = 0;
        // Most have none.
        let ends = if self.opened[usize::from(asid)] > 0 { ENDS } else { 0 };
        for index in 0..ends {
            if self.ends[index].asid == asid && self.ends[index].is_open() {
                self.close_end(index, wake);
            }
        }
        let pipes = if self.created[usize::from(asid)] > 0 { PIPES } else { 0 };
        for at in 0..pipes {
            if self.pipes[at].token != 0 && self.pipes[at].creator == asid {
                self.pipes[at].abandoned = [true; 2];
                self.settle(at, wake);
            }
        }
    }

    /// Pipes and ends in use.
    pub fn in_use(&self) -> (usize, usize) {
        let pipes = self.pipes.iter().filter(|p| p.token != 0).count();
        (pipes, self.ends.iter().filter(|e| e.is_open()).count())
    }

    fn find(&self, token: u64) -> Result<usize, Error> {
        let at = token as usize % PIPES;
        if token != 0 && self.pipes[at].token == token { Ok(at) } else { Err(Error::NoPipe) }
    }

    /// The open end that the control word names.
    fn index(&self, control: u64) -> Option<usize> {
        let index = control as usize % ENDS;
        let end = &self.ends[index];
        (end.control == control && end.is_open()).then_some(index)
    }

    /// The pipe of the open end, if it is of this side.
    #[inline]
    pub(crate) fn end(&self, control: u64, side: Side) -> Option<usize> {
        let end = &self.ends[control as usize % ENDS];
        let named = end.control == control && control & End::bit(side) != 0;
        named.then_some(usize::from(end.pipe) % PIPES)
    }

    fn close_end(&mut self, index: usize, wake: &mut impl FnMut(Wake)) {
        let End { asid, pipe, control, .. } = self.ends[index];
        let side = if control & End::bit(Side::Read) != 0 { Side::Read } else { Side::Write };
        self.ends[index].control &= !End::SIDES;
        self.opened[usize::from(asid)] -= 1;
        let at = usize::from(pipe);
        self.pipes[at].ends[side as usize] -= 1;
        self.settle(at, wake);
    }

    /// After an end closed or the creator left: wakes who waits, frees the pipe if its life is over.
    fn settle(&mut self, at: usize, wake: &mut impl FnMut(Wake)) {
        let pipe = &mut self.pipes[at];
        for side in Side::BOTH {
            if pipe.waiting[side as usize] != 0 {
                wake(pipe.take_waiting(at, side));
            }
        }
        if pipe.ends == [0; 2] && pipe.ended(Side::Read) && pipe.ended(Side::Write) {
            pipe.token = 0;
            self.created[usize::from(pipe.creator)] -= 1;
        }
    }
}
