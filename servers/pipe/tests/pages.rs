//! Pages that clients lend: what is offered goes to whom it should, once, and nobody sleeps for ever.

mod fake;

use fake::{Fake, Offer};
use pebble_abi::words::Asid;
use pebble_pipe::*;
use proptest::prelude::*;

const PAGE: usize = 4096;

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

#[derive(Clone, Debug)]
enum Job {
    /// Bytes of each write.
    Write(Vec<usize>),
    /// Bytes of each read, and whether they come into a page.
    Read(usize, bool),
}

struct Thread {
    asid: u16,
    control: u64,
    job: Job,
    /// Where it sleeps, and whether with an offer.
    asleep: Option<(Queue, bool)>,
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
        if let Job::Write(lengths) = &mut self.threads[who].job {
            match lengths[0] - count {
                0 => _ = lengths.remove(0),
                rest => lengths[0] = rest,
            }
            let bytes = self.bytes(who, count);
            self.threads[who].sent.extend(bytes);
        } else if count == 0 {
            self.close(who);
        } else {
            let page = &self.fake.memory[who * PAGE..][..count];
            self.received.extend_from_slice(page);
        }
    }

    fn outcome(&mut self, who: usize, outcome: Page, parks: bool) {
        match outcome {
            Page::Done { count, wake } => {
                self.wake(wake);
                self.moved(who, count);
            }
            Page::Offered { queue, wake } => {
                self.wake(wake);
                self.threads[who].asleep = Some((queue, true));
            }
            Page::Block(queue) if parks => {
                self.pipes.park(queue);
                self.threads[who].parked = Some(queue);
            }
            Page::Block(queue) => self.threads[who].asleep = Some((queue, false)),
            Page::Failed(error) => {
                assert_eq!(error, Error::NoReader);
                self.threads[who].job = Job::Write(Vec::new());
            }
        }
    }

    fn step(&mut self, who: usize, parks: bool) {
        if let Some((queue, offers)) = self.threads[who].asleep.take() {
            self.tokens[queue.index()] -= 1;
            let offer = &mut self.fake.offers[queue.index()];
            if offers && let Offer::Done(count) = core::mem::replace(offer, Offer::Free) {
                return self.moved(who, count);
            }
        }
        let page = (who * PAGE) as u64;
        self.fake.sleeps = !parks;
        match self.threads[who].job.clone() {
            Job::Write(lengths) => match lengths.first().copied() {
                None => self.close(who),
                Some(len) => {
                    let bytes = self.bytes(who, len);
                    self.fake.memory[who * PAGE..][..len].copy_from_slice(&bytes);
                    let from = Lent { address: page, len };
                    let outcome = self.pipes.write_page(self.threads[who].control, from, &mut self.fake);
                    self.outcome(who, outcome, parks);
                }
            },
            Job::Read(len, true) => {
                let to = Lent { address: page, len };
                let outcome = self.pipes.read_page(self.threads[who].control, to, &mut self.fake);
                self.outcome(who, outcome, parks);
            }
            Job::Read(len, false) => {
                let max = len.min(32) as u64;
                let outcome = match self.pipes.read(self.threads[who].control, max, &mut self.fake) {
                    Read::Data { count, words, wake } => {
                        let bytes = words.map(u64::to_le_bytes);
                        self.fake.memory[who * PAGE..][..count]
                            .copy_from_slice(&bytes.as_flattened()[..count]);
                        Page::Done { count, wake }
                    }
                    Read::Block(queue) => Page::Block(queue),
                    Read::Failed(error) => Page::Failed(error),
                };
                self.outcome(who, outcome, parks);
            }
        }
    }

    /// Its domain dies; if it sleeps, its wait is cut short.
    fn kill(&mut self, who: usize) {
        self.threads[who].done = true;
        if let Some((queue, offers)) = self.threads[who].asleep.take() {
            let offer = &mut self.fake.offers[queue.index()];
            if !offers || core::mem::replace(offer, Offer::Free) == Offer::Open {
                self.pipes.give_up(queue);
            }
        }
        let mut wakes = Vec::new();
        self.pipes.gone(self.threads[who].asid.into(), &mut |wake| wakes.push(wake));
        wakes.into_iter().for_each(|wake| self.wake(wake));
    }

    fn run(&mut self, kill: Option<(usize, usize)>, order: &[usize], parks: &[bool]) {
        for step in 0.. {
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

proptest! {
    /// In any order of execution, some waiting elsewhere, one killed: who lives finishes, nothing is left, and
    /// the bytes of each writer arrive in order, once.
    #[test]
    fn everybody_finishes(
        writers in prop::collection::vec(prop::collection::vec(1usize..=PAGE, 0..12), 1..4),
        readers in prop::collection::vec((1usize..=PAGE, any::<bool>()), 1..4),
        kill in prop::option::of((0usize..6, 0usize..60)),
        order in prop::collection::vec(0usize..64, 1..60),
        parks in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut pipes = Pipes::new();
        let token = pipes.create(Asid(1), 9).unwrap();
        let alone = readers.len() == 1;
        let jobs = writers.into_iter().map(Job::Write).chain(readers.into_iter().map(|(n, page)| Job::Read(n, page)));
        let threads: Vec<Thread> = jobs.enumerate().map(|(n, job)| {
            let side = if matches!(job, Job::Write(_)) { Side::Write } else { Side::Read };
            let asid = 2 + n as u16;
            let control = pipes.open(asid.into(), token, side).unwrap();
            Thread { asid, control, job, asleep: None, parked: None, done: false, sent: Vec::new() }
        }).collect();
        let fake = Fake { memory: vec![0; threads.len() * PAGE], ..Fake::none() };
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
