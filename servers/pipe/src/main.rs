//! The pipe server's component: entries around [`Pipes`], one lock, a semaphore for each queue.
//!
//! A thread sleeps here as long as few do ([`SLEEPERS`]), so that the rest of the stacks is never waited for.
//! All others are parked.
//!
//! The semaphores of a pipe are made when its place is first used, before anybody can know its token, so that
//! reading and writing find them there. V comes after the lock is given up, so who is woken finds it free;
//! only the rare operations that end pipes do it before.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::*};
use pebble::abi::control::PASSED_ON;
use pebble::abi::{errno, map, sys};
use pebble::api::{self, Errno};
use pebble::buffer::Window;
use pebble::handover::{Bytes, Handover};
use pebble::io::FilePortals;
use pebble::link::More;
use pebble::portal;
use pebble::sync::{Guard, Lock, Queued, Quick, Section};
use pebble::wait::{self, Parking};
use pebble::words::{Asid, VirtAddr};
use pebble_pipe::{
    Error, FORMAT, Lent, Offers, PARKED, PIPES as MOST, Page, Pages, Pipes, QUEUES, Queue, Read, SLEEPERS,
    Side, Wake, Write, parse_path,
};

pebble::import! {
    WILL_WAKE = "scheduler.will_wake";
    WAKE = "scheduler.wake";
    FAMILY: pm::Family;
    CALL_SITE: pm::CallSite;
    FLIP: vm::Flip;
}
// The portals of an end, in the order of `sys::FILE_READ` and its fellows.
pebble::interfaces!();
pebble::replaceable!(PIPES: State, Vec::new());
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

struct State(Pipes);

impl Deref for State {
    type Target = Pipes;
    #[inline(always)]
    fn deref(&self) -> &Pipes {
        &self.0
    }
}

impl DerefMut for State {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Pipes {
        &mut self.0
    }
}

/// A bit for each place of a pipe whose semaphores are made, then the pipes: a successor has semaphores where
/// its predecessor had.
impl Handover for State {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, bytes: &mut Vec<u8>) -> Result<u64, Errno> {
        let made = (0..MOST as u64).filter(|n| Queue::of(*n).into_iter().all(|queue| semaphore(queue) != 0));
        let made = made.fold(0u64, |made, n| made | 1 << n);
        let saved =
            Bytes::append(bytes, &made.to_le_bytes()) && self.0.save(|part| Bytes::append(bytes, part));
        if saved { Ok(FORMAT) } else { Err(errno::ENOMEM) }
    }

    fn wake(&mut self) {
        self.0.dismiss(&mut signal);
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        let (made, rest) = bytes.split_first_chunk().ok_or(errno::EINVAL)?;
        let made = u64::from_le_bytes(*made);
        self.0.load(format, rest)?;
        prepare_locks();
        let mut places = (0..MOST as u64).filter(|n| made >> n & 1 == 1);
        places.try_for_each(|n| Queue::of(n).into_iter().try_for_each(prepare))
    }
}

static PIPES: Lock<State> = Lock::new(State(Pipes::new()));
/// Those that wait without a stack of this component's, by queue.
static PARKING: Parking<QUEUES> = Parking::new(&WILL_WAKE, &WAKE);
/// So many more threads may sleep here. It falls under the lock alone.
static BEDS: AtomicIsize = AtomicIsize::new(SLEEPERS);
/// Indices of P; 0: not made yet.
static SEMAPHORES: [AtomicUsize; QUEUES] = [const { AtomicUsize::new(0) }; QUEUES];
/// Indices of V, which are one more: an addition on the shortest way.
static WAKES: [AtomicUsize; QUEUES] = [const { AtomicUsize::new(0) }; QUEUES];

fn semaphore(queue: Queue) -> usize {
    SEMAPHORES[queue.index() % QUEUES].load(Relaxed)
}

/// Before anybody can meet anybody.
fn prepare_locks() {
    PIPES.prepare();
    PARKING.prepare();
}

fn prepare(queue: Queue) -> Result<(), Errno> {
    if semaphore(queue) == 0 {
        let p = api::sem_create(0)?;
        SEMAPHORES[queue.index()].store(p, Relaxed);
        WAKES[queue.index()].store(p + 1, Relaxed);
    }
    Ok(())
}

#[inline]
fn signal(wake: Wake) {
    for _ in 0..wake.count & !PARKED {
        let _ = api::sem_post(semaphore(wake.queue));
    }
    if wake.count & PARKED != 0 {
        PARKING.wake(wake.queue.index());
    }
}

/// Whether one more may sleep here; it must then.
#[inline]
fn may_sleep() -> bool {
    let free = BEDS.load(Relaxed) > 0;
    if free {
        BEDS.fetch_sub(1, Relaxed);
    }
    free
}

/// Sleeps in the queue, or leaves to wait elsewhere; fails when the thread's domain has died meanwhile. The
/// operation has said that it blocks, under this lock.
fn block(mut pipes: Guard<State>, queue: Queue) -> Result<(), Errno> {
    if may_sleep() {
        drop(pipes);
        return sleep(queue);
    }
    pipes.park(queue);
    PARKING.enter(queue.index());
    drop(pipes);
    wait::leave()
}

#[inline]
fn sleep(queue: Queue) -> Result<(), Errno> {
    let woken = api::sem_wait(semaphore(queue));
    BEDS.fetch_add(1, Relaxed);
    if woken.is_ok() { Ok(()) } else { cut_short(queue) }
}

#[cold]
fn cut_short(queue: Queue) -> Result<(), Errno> {
    PIPES.lock().give_up(queue);
    Err(errno::EINTR)
}

// The usual small operations save no registers: they contain no call, but end in one whenever something is
// left to do.

#[inline(always)]
extern "C" fn read(control: u64, max: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    loop {
        match read_word(control, max) {
            (count @ 1.., word) => {
                more[0] = word;
                return count;
            }
            (..0, queue) => {
                if let Err(error) = sleep(Queue::numbered(queue)) {
                    return -error;
                }
            }
            (0, _) => {
                let (value, words) = read_any(control, max);
                *more = words;
                return value;
            }
        }
    }
}

#[inline(never)]
fn read_word(control: u64, max: u64) -> (i64, u64) {
    match PIPES.enter() {
        Ok(mut pipes) => {
            let (count, word) = pipes.read_word(control, max, may_sleep);
            if Quick::release(pipes) { passed_on(count, word) } else { (count, word) }
        }
        Err(queued) => read_in_turn(control, max, queued),
    }
}

#[cold]
#[inline(never)]
fn passed_on(count: i64, word: u64) -> (i64, u64) {
    PIPES.pass_on();
    (count, word)
}

#[cold]
#[inline(never)]
fn read_in_turn(control: u64, max: u64, queued: Queued<State>) -> (i64, u64) {
    queued.wait().read_word(control, max, may_sleep)
}

#[inline(never)]
fn read_any(control: u64, max: u64) -> portal::Wide {
    loop {
        let mut pipes = PIPES.lock();
        match pipes.read(control, max, &mut Windows) {
            Read::Data { count, words, wake } => {
                drop(pipes);
                signal(wake);
                return (count as i64, words);
            }
            Read::Block(queue) => {
                if let Err(error) = block(pipes, queue) {
                    return (-error, [0; 4]);
                }
            }
            Read::Failed(error) => return (-error.errno(), [0; 4]),
        }
    }
}

extern "C" fn write(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    let mut pipes = match PIPES.enter() {
        Ok(pipes) => pipes,
        Err(queued) => return write_in_turn(control, count, a, b, c, d, queued),
    };
    let wake = pipes.write_word(control, count, a);
    let pass_on = Quick::release(pipes);
    match wake {
        None => write_any(control, count, a, b, c, d, pass_on),
        Some(wake) if pass_on || wake.count > 1 => written(count, wake, pass_on),
        Some(Wake { count: 0, .. }) => count as i64,
        Some(Wake { queue, .. }) => wake_one(queue, count),
    }
}

/// The usual end of a write that somebody waits for.
#[inline(never)]
fn wake_one(queue: Queue, count: u64) -> i64 {
    let v = WAKES[queue.index() % QUEUES].load(Relaxed);
    if portal::call_once(v, []) == Ok(0) { count as i64 } else { -errno::EIO }
}

#[cold]
#[inline(never)]
fn written(count: u64, wake: Wake, pass_on: bool) -> i64 {
    if pass_on {
        PIPES.pass_on();
    }
    signal(wake);
    count as i64
}

#[cold]
#[inline(never)]
fn write_in_turn(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64, queued: Queued<State>) -> i64 {
    drop(queued.wait());
    write_any(control, count, a, b, c, d, false)
}

#[inline(never)]
fn write_any(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64, pass_on: bool) -> i64 {
    if pass_on {
        PIPES.pass_on();
    }
    loop {
        let mut pipes = PIPES.lock();
        match pipes.write(control, count, [a, b, c, d]) {
            Write::Done { count, wake } => {
                drop(pipes);
                signal(wake);
                return count as i64;
            }
            Write::Block(queue) => {
                if let Err(error) = block(pipes, queue) {
                    return -error;
                }
            }
            Write::Failed(error) => return -error.errno(),
        }
    }
}

/// The offers by queue: `FREE`, `OPEN`, `TAKEN`, or `DONE` with the number of bytes above it.
static OFFERS: [AtomicUsize; QUEUES] = [const { AtomicUsize::new(FREE) }; QUEUES];
const FREE: usize = 0;
const OPEN: usize = 1;
const TAKEN: usize = 2;
const DONE: usize = 3;
const COUNT: usize = 4;
/// Ticks between looks at an offer that is being used.
const PAUSE: u64 = portal::MILLISECOND / 50;

/// All but a withdrawal is under the lock.
struct Windows;

impl Offers for Windows {
    fn make(&mut self, queue: Queue) -> bool {
        let offer = &OFFERS[queue.index() % QUEUES];
        let may = offer.load(Relaxed) == FREE && may_sleep();
        if may {
            offer.store(OPEN, Release);
        }
        may
    }

    fn take(&mut self, queue: Queue) -> bool {
        OFFERS[queue.index() % QUEUES].compare_exchange(OPEN, TAKEN, AcqRel, Relaxed).is_ok()
    }

    fn finish(&mut self, queue: Queue, count: usize) {
        OFFERS[queue.index() % QUEUES].store(DONE + count * COUNT, Release);
    }

    // Each address is in a page that its owner's call has lent, as far as `page` has told.

    fn copy(&mut self, from: u64, to: u64, len: usize) {
        if let (Ok(from), Ok(to)) = (Window::page(from), Window::page(to)) {
            let _ = from.copy(&to, len);
        }
    }

    fn flip(&mut self, one: Pages, other: Pages) -> u64 {
        let (here, there) = (VirtAddr(one.address), VirtAddr(other.address));
        let count = one.count.min(other.count);
        FLIP.call(one.domain, here, other.domain, there, count).map_or(0, |flipped| flipped.max(0) as u64)
    }

    fn wake(&mut self, wake: Wake) {
        signal(wake);
    }

    fn load(&mut self, from: u64, len: usize) -> [u64; 4] {
        Window::page(from).and_then(|window| window.words(0, len)).unwrap_or_default()
    }

    fn store(&mut self, to: u64, words: [u64; 4], len: usize) {
        let _ = Window::page(to).and_then(|window| window.set_words(0, words, len));
    }
}

/// The offer is over: how many bytes or pages went, or nobody has used it.
fn withdraw(queue: Queue) -> Option<usize> {
    let offer = &OFFERS[queue.index() % QUEUES];
    loop {
        match offer.compare_exchange(OPEN, FREE, AcqRel, Acquire) {
            Ok(_) => return None,
            Err(TAKEN) => {
                let _ = api::hrsleep(portal::time() + PAUSE);
            }
            Err(done) => {
                offer.store(FREE, Release);
                return Some(done / COUNT);
            }
        }
    }
}

/// Sleeps with an offer. `None`: look again.
fn sleep_offering(queue: Queue) -> Option<Result<usize, Errno>> {
    let woken = api::sem_wait(semaphore(queue));
    BEDS.fetch_add(1, Relaxed);
    match withdraw(queue) {
        Some(count) => Some(Ok(count)),
        None if woken.is_ok() => None,
        None => Some(cut_short(queue).map(|()| 0)),
    }
}

/// One call about a page that the client lends.
fn page(at: VirtAddr, most: u64, work: impl Fn(&mut Pipes, Lent) -> Page) -> i64 {
    let Ok(window) = Window::page(at.get()) else { return -errno::EFAULT };
    let lent = Lent { address: at.get(), len: window.len().min(most as usize) };
    meet(|pipes| work(pipes, lent))
}

/// One call, until there is an answer: the other side comes, or has come.
fn meet(work: impl Fn(&mut Pipes) -> Page) -> i64 {
    loop {
        let whole = Section::enter();
        let mut pipes = PIPES.lock();
        match work(&mut pipes) {
            Page::Done { count, wake } => {
                drop(pipes);
                signal(wake);
                return count as i64;
            }
            Page::Offered { queue, wake } => {
                drop(pipes);
                signal(wake);
                match sleep_offering(queue) {
                    None => {}
                    // Pages that could not go.
                    Some(Ok(0)) => return -errno::EAGAIN,
                    Some(outcome) => return outcome.map_or_else(|error| -error, |count| count as i64),
                }
            }
            Page::Copy(wake) => {
                drop(pipes);
                signal(wake);
                return -errno::EAGAIN;
            }
            Page::Block(queue) => {
                drop(whole);
                if let Err(error) = block(pipes, queue) {
                    return -error;
                }
            }
            Page::Failed(error) => return -error.errno(),
        }
    }
}

extern "C" fn read_page(control: u64, at: VirtAddr, most: u64) -> i64 {
    page(at, most, |pipes, to| pipes.read_page(control, to, &mut Windows))
}

extern "C" fn write_page(control: u64, at: VirtAddr, count: u64) -> i64 {
    page(at, count, |pipes, from| pipes.write_page(control, from, &mut Windows))
}

/// The caller's pages for those of the other side. Pages that only a controller has named are left alone.
#[inline(never)]
fn flip(control: u64, pages: u64) -> i64 {
    let site = match CALL_SITE.call() {
        Ok(site @ 1..) => site as u64,
        _ => return -errno::EAGAIN,
    };
    let (address, count) = (pages & !(map::PAGE - 1), pages % map::PAGE);
    if site & PASSED_ON != 0 || count == 0 {
        return -errno::EAGAIN;
    }
    let pages = Pages { domain: Asid(site >> 16 & 0xffff), address, count };
    meet(|pipes| pipes.flip(control, pages, &mut Windows))
}

/// A pipe has no place to move to.
extern "C" fn seek(control: u64, offset: u64, whence: u64) -> i64 {
    if whence == sys::SEEK_FLIP {
        return flip(control, offset);
    }
    if whence == sys::SEEK_READY {
        return PIPES.lock().ready(control).map_or_else(|error| -error.errno(), |ready| ready as i64);
    }
    let made = PORTALS.page(control, whence).unwrap_or(Err(errno::EINVAL));
    made.map_or_else(|error| -error, |index| index as i64)
}

extern "C" fn close(control: u64) -> i64 {
    answer(PIPES.lock().close(control, &mut signal))
}

fn answer(outcome: Result<(), Error>) -> i64 {
    outcome.map_or_else(|error| -error.errno(), |()| 0)
}

extern "C" fn create(creator: Asid) -> i64 {
    prepare_locks();
    let Ok(family @ 0..) = FAMILY.call(creator) else { return -errno::ESRCH };
    // Until it has its semaphores: whoever is handed the pipes finds it whole, or not at all.
    let mut pipes = PIPES.lock();
    pipes.belongs(creator, family as u16);
    let token = match pipes.create(creator, portal::time()) {
        Ok(token) => token,
        Err(error) => return -error.errno(),
    };
    match Queue::of(token).into_iter().try_for_each(prepare) {
        Ok(()) => token as i64,
        Err(error) => {
            let _ = pipes.abandon(creator, token, &Side::BOTH, &mut signal);
            -error
        }
    }
}

static PORTALS: FilePortals = FilePortals::new("pipe.read");

extern "C" fn open(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let Some((token, side)) = parse_path([a, b, c, d, e]) else { return -errno::ENOENT };
    let Ok(family @ 0..) = FAMILY.call(client) else { return -errno::ESRCH };
    // Until it has its portals: an end that nobody holds would never be closed.
    let mut pipes = PIPES.lock();
    pipes.belongs(client, family as u16);
    let control = match pipes.open(client, token, side) {
        Ok(control) => control,
        Err(error) => return -error.errno(),
    };
    PORTALS.create(control).map_or_else(
        |error| {
            let _ = pipes.close(control, &mut signal);
            -error
        },
        |index| index as i64,
    )
}

/// Sides: bit 0 reading, bit 1 writing.
extern "C" fn abandon(creator: Asid, token: u64, sides: u64) -> i64 {
    let sides: &[Side] = match sides {
        1 => &[Side::Read],
        2 => &[Side::Write],
        3 => &Side::BOTH,
        _ => return -errno::EINVAL,
    };
    answer(PIPES.lock().abandon(creator, token, sides, &mut signal))
}

/// The domain is dead.
extern "C" fn gone(asid: Asid) -> i64 {
    PIPES.lock().gone(asid, &mut signal);
    0
}
