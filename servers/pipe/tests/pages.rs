//! Pages that clients lend: what is offered goes to whom it should, once, and nobody sleeps for ever.

mod fake;

use fake::{Fake, Offer, PAGE};
use pebble_abi::words::Asid;
use pebble_pipe::*;
use proptest::prelude::*;

/// More steps than all bytes take, 32 at a time, through hands that do nothing in between.
const LIMIT: usize = 5_000_000;
/// Of each thread.
const AREA: usize = 3 * PAGE;

fn pair(pipes: &mut Pipes) -> (u64, u64, u64) {
    let token = pipes.create(Asid(1), 42).unwrap();
    (token, pipes.open(Asid(2), token, Side::Read).unwrap(), pipes.open(Asid(3), token, Side::Write).unwrap())
}

/// Two pages, the second full of bytes.
fn fake() -> Fake {
    let memory = (0..2 * PAGE).map(|at| if at < PAGE { 0 } else { at as u8 | 1 }).collect();
    Fake { memory, sleeps: true, ..Fake::none() }
}

const TO: Lent = Lent { address: 0, len: PAGE };
const FROM: Lent = Lent { address: PAGE as u64, len: PAGE };

#[test]
fn a_writer_that_sleeps_gives_to_the_reader_that_comes() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    let Page::Offered { queue, .. } = pipes.write_page(w, FROM, &mut fake) else { panic!() };
    let Page::Done { count: 4096, wake } = pipes.read_page(r, TO, &mut fake) else { panic!() };
    assert_eq!(wake, Wake { queue, count: 1 });
    assert_eq!(fake.offers[queue.index()], Offer::Done(4096));
    assert_eq!(fake.memory[..PAGE], fake.memory[PAGE..]);
}

#[test]
fn a_reader_that_sleeps_gets_what_it_has_room_for() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    let Page::Offered { queue, .. } = pipes.read_page(r, Lent { len: 1000, ..TO }, &mut fake) else {
        panic!()
    };
    let Page::Done { count: 1000, wake } = pipes.write_page(w, FROM, &mut fake) else { panic!() };
    assert_eq!((wake, fake.offers[queue.index()]), (Wake { queue, count: 1 }, Offer::Done(1000)));
    // One transfer ends it, though there may be room: the next writer offers.
    assert!(matches!(pipes.write_page(w, FROM, &mut fake), Page::Offered { .. }));
}

#[test]
fn what_is_withdrawn_is_not_touched() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    let Page::Offered { queue, .. } = pipes.read_page(r, TO, &mut fake) else { panic!() };
    fake.offers[queue.index()] = Offer::Free;
    let Page::Offered { queue, .. } = pipes.write_page(w, FROM, &mut fake) else { panic!() };
    assert_eq!(fake.memory[..PAGE], [0; PAGE]);
    fake.offers[queue.index()] = Offer::Free;
    assert!(matches!(pipes.read_page(r, TO, &mut fake), Page::Offered { .. }));
    assert_eq!(fake.memory[..PAGE], [0; PAGE]);
}

/// The old writer's thread still sleeps when another pipe gets the place.
#[test]
fn an_offer_does_not_outlive_its_pipe() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (token, r, w) = pair(&mut pipes);
    assert!(matches!(pipes.write_page(w, FROM, &mut fake), Page::Offered { .. }));
    for end in [r, w] {
        pipes.close(end, &mut |_| {}).unwrap();
    }
    let (next, r, _) = pair(&mut pipes);
    assert_eq!(Queue::of(token), Queue::of(next), "the same place");
    let outcome = pipes.read_page(r, TO, &mut fake);
    assert!(matches!(outcome, Page::Offered { .. }), "{outcome:?}");
    assert_eq!(fake.memory[..PAGE], [0; PAGE]);
}

#[test]
fn who_reads_little_gets_it_through_the_ring() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    let Page::Offered { queue, .. } = pipes.write_page(w, FROM, &mut fake) else { panic!() };
    let Read::Data { count: 32, words, wake } = pipes.read(r, 32, &mut fake) else { panic!() };
    assert_eq!(words.map(u64::to_le_bytes).as_flattened(), &fake.memory[PAGE..PAGE + 32]);
    assert_eq!((wake, fake.offers[queue.index()]), (Wake { queue, count: 1 }, Offer::Done(RING_BYTES)));
}

#[test]
fn words_written_before_come_before_an_offer() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    assert!(matches!(pipes.write(w, 3, [0x63_62_61, 0, 0, 0]), Write::Done { .. }));
    assert!(matches!(pipes.write_page(w, FROM, &mut fake), Page::Offered { .. }));
    assert!(matches!(pipes.read_page(r, TO, &mut fake), Page::Done { count: 3, .. }));
    assert_eq!(&fake.memory[..4], b"abc\0");
    assert!(matches!(pipes.read_page(r, TO, &mut fake), Page::Done { count: 4096, .. }));
}

/// The reader has been woken for the words, and has not run yet.
#[test]
fn a_page_does_not_overtake_words() {
    let (mut pipes, mut fake) = (Pipes::new(), fake());
    let (_, r, w) = pair(&mut pipes);
    assert!(matches!(pipes.read_page(r, TO, &mut fake), Page::Offered { .. }));
    assert!(matches!(pipes.write(w, 3, [0x63_62_61, 0, 0, 0]), Write::Done { .. }));
    assert!(matches!(pipes.write_page(w, FROM, &mut fake), Page::Offered { .. }));
    assert_eq!(fake.memory[..PAGE], [0; PAGE]);
}

fn pages(domain: u64, address: usize, count: u64) -> Pages {
    Pages { domain: Asid(domain), address: address as u64, count }
}

/// Four pages, of each domain two; those of the second domain, the writer's, are full of bytes.
fn flipping() -> (Fake, Pages, Pages) {
    let memory = (0..4 * PAGE).map(|at| if at < 2 * PAGE { 0 } else { (at / PAGE) as u8 }).collect();
    (Fake { memory, sleeps: true, ..Fake::none() }, pages(2, 0, 2), pages(3, 2 * PAGE, 2))
}

#[test]
fn pages_change_places_whoever_comes_first() {
    for reader_first in [true, false] {
        let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
        let (_, r, w) = pair(&mut pipes);
        let calls = if reader_first { [(r, to), (w, from)] } else { [(w, from), (r, to)] };
        let Page::Offered { queue, .. } = pipes.flip(calls[0].0, calls[0].1, &mut fake) else { panic!() };
        let outcome = pipes.flip(calls[1].0, calls[1].1, &mut fake);
        assert_eq!(outcome, Page::Done { count: 2, wake: Wake { queue, count: 1 } });
        assert_eq!(fake.offers[queue.index()], Offer::Done(2));
        let first = [0, PAGE, 2 * PAGE, 3 * PAGE].map(|at| fake.memory[at]);
        assert_eq!(first, [2, 3, 0, 0]);
    }
}

#[test]
fn the_smaller_side_says_how_many_pages_flip() {
    let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
    let (_, r, w) = pair(&mut pipes);
    assert!(matches!(pipes.flip(r, Pages { count: 1, ..to }, &mut fake), Page::Offered { .. }));
    assert!(matches!(pipes.flip(w, from, &mut fake), Page::Done { count: 1, .. }));
    assert_eq!((fake.memory[0], fake.memory[PAGE]), (2, 0));
}

#[test]
fn pages_that_may_not_flip_are_copied_by_both() {
    for fixed in [2, 3] {
        let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
        fake.fixed.push(fixed);
        let (_, r, w) = pair(&mut pipes);
        let Page::Offered { queue, .. } = pipes.flip(w, from, &mut fake) else { panic!() };
        assert_eq!(pipes.flip(r, to, &mut fake), Page::Copy(Wake { queue, count: 1 }));
        assert_eq!(fake.offers[queue.index()], Offer::Done(0), "the writer copies, too");
        assert_eq!(fake.memory[0], 0);
    }
}

#[test]
fn who_reads_plainly_has_a_writer_of_pages_copy() {
    let (mut pipes, (mut fake, _, from)) = (Pipes::new(), flipping());
    let (_, r, w) = pair(&mut pipes);
    let Page::Offered { queue, .. } = pipes.flip(w, from, &mut fake) else { panic!() };
    assert!(matches!(pipes.read(r, 32, &mut fake), Read::Block(_)));
    assert_eq!(fake.woken, [Wake { queue, count: 1 }]);
    // It withdraws its offer, and looks again.
    fake.offers[queue.index()] = Offer::Free;
    assert!(matches!(pipes.flip(w, from, &mut fake), Page::Copy(Wake { count: 0, .. })));
}

#[test]
fn pages_do_not_overtake_words_or_pages_that_are_lent() {
    let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
    let (_, r, w) = pair(&mut pipes);
    assert!(matches!(pipes.flip(r, to, &mut fake), Page::Offered { .. }));
    assert!(matches!(pipes.write(w, 3, [0x63_62_61, 0, 0, 0]), Write::Done { .. }));
    assert!(matches!(pipes.flip(w, from, &mut fake), Page::Copy(_)));
    let (mut pipes, (mut fake, to, _)) = (Pipes::new(), flipping());
    let (_, r, w) = pair(&mut pipes);
    let lent = Lent { address: 2 * PAGE as u64, len: PAGE };
    assert!(matches!(pipes.write_page(w, lent, &mut fake), Page::Offered { .. }));
    assert!(matches!(pipes.flip(r, to, &mut fake), Page::Copy(_)));
}

/// Of two readers one waits plainly, and the one with the offer dies.
#[test]
fn an_offer_that_is_withdrawn_hides_nobody() {
    let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
    let (token, r, w) = pair(&mut pipes);
    let other = pipes.open(Asid(4), token, Side::Read).unwrap();
    let Page::Offered { queue, .. } = pipes.flip(r, to, &mut fake) else { panic!() };
    assert!(matches!(pipes.read(other, 32, &mut fake), Read::Block(_)));
    fake.offers[queue.index()] = Offer::Free;
    pipes.give_up(queue);
    assert!(matches!(pipes.flip(w, from, &mut fake), Page::Copy(_)), "the other one waits for bytes");
}

#[test]
fn at_the_end_nothing_flips() {
    let (mut pipes, (mut fake, to, from)) = (Pipes::new(), flipping());
    let (_, r, w) = pair(&mut pipes);
    pipes.close(w, &mut |_| {}).unwrap();
    assert!(matches!(pipes.flip(r, to, &mut fake), Page::Done { count: 0, .. }));
    assert_eq!(pipes.flip(w, from, &mut fake), Page::Failed(Error::NotOpen));
    let (_, r, w) = pair(&mut pipes);
    pipes.close(r, &mut |_| {}).unwrap();
    assert_eq!(pipes.flip(w, from, &mut fake), Page::Failed(Error::NoReader));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Words,
    Lent,
    Flips,
}

#[derive(Clone, Debug)]
enum Job {
    /// Bytes of each write, and whether whole pages flip.
    Write(Vec<usize>, bool),
    /// Bytes of each read.
    Read(usize, How),
}

struct Thread {
    asid: u16,
    control: u64,
    job: Job,
    /// Where it sleeps; with an offer, how many bytes are a unit of what its partner tells.
    asleep: Option<(Queue, Option<usize>)>,
    /// Whether it was told to copy what it had wanted to flip, and is at that.
    copies: bool,
    parked: Option<Queue>,
    done: bool,
    /// Bytes written, as its partner has told.
    sent: Vec<u8>,
}

struct World {
    pipes: Pipes,
    fake: Fake,
    tokens: Vec<u32>,
    called: Vec<Queue>,
    threads: Vec<Thread>,
    received: Vec<u8>,
}

impl World {
    fn wake(&mut self, wake: Wake) {
        self.tokens[wake.queue.index()] += u32::from(wake.count & !PARKED);
        if wake.count & PARKED != 0 {
            self.called.push(wake.queue);
        }
    }

    fn close(&mut self, who: usize) {
        let mut wakes = Vec::new();
        self.pipes.close(self.threads[who].control, &mut |wake| wakes.push(wake)).unwrap();
        wakes.into_iter().for_each(|wake| self.wake(wake));
        self.threads[who].done = true;
    }

    /// The bytes that a writer has next: 32 of its own in turn.
    fn bytes(&self, who: usize, len: usize) -> Vec<u8> {
        let sent = self.threads[who].sent.len();
        (sent..sent + len).map(|n| (who * 32 + n % 32) as u8).collect()
    }

    /// It has been told how many of its bytes went.
    fn moved(&mut self, who: usize, count: usize) {
        self.threads[who].copies = false;
        if let Job::Write(lengths, _) = &mut self.threads[who].job {
            match lengths[0] - count {
                0 => _ = lengths.remove(0),
                rest => lengths[0] = rest,
            }
            let bytes = self.bytes(who, count);
            self.threads[who].sent.extend(bytes);
        } else if count == 0 {
            self.close(who);
        } else {
            let page = &self.fake.memory[who * AREA..][..count];
            self.received.extend_from_slice(page);
        }
    }

    /// `unit`: bytes that are counted as one.
    fn outcome(&mut self, who: usize, outcome: Page, unit: usize, parks: bool) {
        core::mem::take(&mut self.fake.woken).into_iter().for_each(|wake| self.wake(wake));
        match outcome {
            Page::Done { count, wake } => {
                self.wake(wake);
                self.moved(who, count * unit);
            }
            Page::Offered { queue, wake } => {
                self.wake(wake);
                self.threads[who].asleep = Some((queue, Some(unit)));
            }
            Page::Copy(wake) => {
                self.wake(wake);
                self.threads[who].copies = true;
            }
            Page::Block(queue) if parks => {
                self.pipes.park(queue);
                self.threads[who].parked = Some(queue);
            }
            Page::Block(queue) => self.threads[who].asleep = Some((queue, None)),
            Page::Failed(error) => {
                assert_eq!(error, Error::NoReader);
                self.threads[who].job = Job::Write(Vec::new(), false);
            }
        }
    }

    fn step(&mut self, who: usize, parks: bool) {
        if let Some((queue, unit)) = self.threads[who].asleep.take() {
            self.tokens[queue.index()] -= 1;
            let offer = &mut self.fake.offers[queue.index()];
            if let Some(unit) = unit
                && let Offer::Done(count) = core::mem::replace(offer, Offer::Free)
            {
                if count == 0 {
                    self.threads[who].copies = true;
                    return;
                }
                return self.moved(who, count * unit);
            }
        }
        let (area, control, asid) = (who * AREA, self.threads[who].control, self.threads[who].asid);
        self.fake.sleeps = !parks;
        let copies = self.threads[who].copies;
        match self.threads[who].job.clone() {
            Job::Write(lengths, flips) => match lengths.first().copied() {
                None => self.close(who),
                Some(len) => {
                    let bytes = self.bytes(who, len);
                    self.fake.memory[area..][..len].copy_from_slice(&bytes);
                    if flips && !copies && len >= PAGE {
                        let from = pages(asid.into(), area, (len / PAGE) as u64);
                        let outcome = self.pipes.flip(control, from, &mut self.fake);
                        return self.outcome(who, outcome, PAGE, parks);
                    }
                    let from = Lent { address: area as u64, len: len.min(PAGE) };
                    let outcome = self.pipes.write_page(control, from, &mut self.fake);
                    self.outcome(who, outcome, 1, parks);
                }
            },
            Job::Read(len, How::Flips) if !copies && len >= PAGE => {
                let to = pages(asid.into(), area, (len / PAGE) as u64);
                let outcome = self.pipes.flip(control, to, &mut self.fake);
                self.outcome(who, outcome, PAGE, parks);
            }
            Job::Read(len, How::Lent | How::Flips) => {
                let to = Lent { address: area as u64, len: len.min(PAGE) };
                let outcome = self.pipes.read_page(control, to, &mut self.fake);
                self.outcome(who, outcome, 1, parks);
            }
            Job::Read(len, How::Words) => {
                let max = len.min(32) as u64;
                let outcome = match self.pipes.read(control, max, &mut self.fake) {
                    Read::Data { count, words, wake } => {
                        let bytes = words.map(u64::to_le_bytes);
                        self.fake.memory[area..][..count].copy_from_slice(&bytes.as_flattened()[..count]);
                        Page::Done { count, wake }
                    }
                    Read::Block(queue) => Page::Block(queue),
                    Read::Failed(error) => Page::Failed(error),
                };
                self.outcome(who, outcome, 1, parks);
            }
        }
    }

    /// Its domain dies; if it sleeps, its wait is cut short.
    fn kill(&mut self, who: usize) {
        self.threads[who].done = true;
        if let Some((queue, unit)) = self.threads[who].asleep.take() {
            let offer = &mut self.fake.offers[queue.index()];
            if unit.is_none() || core::mem::replace(offer, Offer::Free) == Offer::Open {
                self.pipes.give_up(queue);
            }
        }
        let mut wakes = Vec::new();
        self.pipes.gone(self.threads[who].asid.into(), &mut |wake| wakes.push(wake));
        wakes.into_iter().for_each(|wake| self.wake(wake));
    }

    fn run(&mut self, kill: Option<(usize, usize)>, order: &[usize], parks: &[bool]) {
        for step in 0.. {
            assert!(step < LIMIT, "it goes on for ever");
            for queue in core::mem::take(&mut self.called) {
                self.threads.iter_mut().filter(|t| t.parked == Some(queue)).for_each(|t| t.parked = None);
            }
            if let Some((victim, when)) = kill
                && step == when
            {
                self.kill(victim % self.threads.len());
                continue;
            }
            let ready: Vec<usize> = (0..self.threads.len())
                .filter(|i| !self.threads[*i].done && self.threads[*i].parked.is_none())
                .filter(|i| self.threads[*i].asleep.is_none_or(|(q, _)| self.tokens[q.index()] > 0))
                .collect();
            if ready.is_empty() {
                return;
            }
            let who = ready[order[step % order.len()] % ready.len()];
            self.step(who, parks[who]);
        }
    }
}

/// Up to an area; every other time whole pages.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![1..=AREA, (1..=AREA / PAGE).prop_map(|pages| pages * PAGE)]
}

proptest! {
    /// In any order of execution, some waiting elsewhere, one killed: who lives finishes, nothing is left, and
    /// the bytes of each writer arrive in order, once.
    #[test]
    fn everybody_finishes(
        writers in prop::collection::vec((prop::collection::vec(length(), 0..6), any::<bool>()), 1..4),
        readers in prop::collection::vec((length(), prop::sample::select(&[How::Words, How::Lent, How::Flips])), 1..4),
        fixed in prop::option::of(2u64..8),
        kill in prop::option::of((0usize..6, 0usize..60)),
        order in prop::collection::vec(0usize..64, 1..60),
        parks in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut pipes = Pipes::new();
        let token = pipes.create(Asid(1), 9).unwrap();
        let alone = readers.len() == 1;
        let writers = writers.into_iter().map(|(lengths, flips)| Job::Write(lengths, flips));
        let jobs = writers.chain(readers.into_iter().map(|(len, how)| Job::Read(len, how)));
        let threads: Vec<Thread> = jobs.enumerate().map(|(n, job)| {
            let side = if matches!(job, Job::Write(..)) { Side::Write } else { Side::Read };
            let asid = 2 + n as u16;
            let control = pipes.open(asid.into(), token, side).unwrap();
            Thread { asid, control, job, asleep: None, parked: None, copies: false, done: false, sent: Vec::new() }
        }).collect();
        let fake =
            Fake { memory: vec![0; threads.len() * AREA], fixed: Vec::from_iter(fixed), ..Fake::none() };
        let mut world =
            World { pipes, fake, tokens: vec![0; QUEUES], called: Vec::new(), threads, received: Vec::new() };
        world.run(kill, &order, &parks);
        let World { threads, received, pipes, .. } = world;
        prop_assert!(threads.iter().all(|t| t.done), "somebody sleeps for ever");
        prop_assert_eq!(pipes.in_use(), (0, 0));
        for (who, thread) in threads.iter().enumerate() {
            let mut its: Vec<u8> = received.iter().copied().filter(|byte| usize::from(byte / 32) == who).collect();
            let mut sent = thread.sent.clone();
            if !alone {
                its.sort_unstable();
                sent.sort_unstable();
            }
            if kill.is_none() {
                prop_assert_eq!(&its, &sent);
            } else if alone {
                // Of a killed writer's last call nobody has told how much went.
                let least = its.len().min(sent.len());
                prop_assert_eq!(&its[..least], &sent[..least]);
            }
        }
    }
}
