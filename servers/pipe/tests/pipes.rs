//! The server as its clients see it: what goes in comes out, nobody sleeps for ever, nothing stays behind.

mod fake;

use std::cell::RefCell;
use std::collections::VecDeque;

use fake::Fake;
use pebble_abi::share;
use pebble_abi::sys::{READY_END, READY_READ, READY_WRITE};
use pebble_abi::words::Asid;
use pebble_pipe::*;
use proptest::prelude::*;

fn pack(bytes: &[u8]) -> [u64; 4] {
    let mut all = [0u8; 32];
    all[..bytes.len()].copy_from_slice(bytes);
    core::array::from_fn(|i| u64::from_le_bytes(*all[i * 8..].first_chunk().unwrap()))
}

fn unpack(count: usize, words: [u64; 4]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).take(count).collect()
}

fn read(pipes: &mut Pipes, control: u64, max: u64) -> Vec<u8> {
    match pipes.read(control, max, &mut Fake::none()) {
        Read::Data { count, words, .. } => unpack(count, words),
        other => panic!("{other:?}"),
    }
}

fn write(pipes: &mut Pipes, control: u64, bytes: &[u8]) {
    assert!(matches!(pipes.write(control, bytes.len() as u64, pack(bytes)), Write::Done { .. }));
}

fn pair(pipes: &mut Pipes) -> (u64, u64, u64) {
    let token = pipes.create(Asid(1), 42).unwrap();
    (token, pipes.open(Asid(2), token, Side::Read).unwrap(), pipes.open(Asid(3), token, Side::Write).unwrap())
}

#[test]
fn data_then_end() {
    let mut pipes = Pipes::new();
    let (_, r, w) = pair(&mut pipes);
    let Read::Block(queue) = pipes.read(r, 32, &mut Fake::none()) else { panic!() };
    let Write::Done { wake, .. } = pipes.write(w, 5, pack(b"hello")) else { panic!() };
    assert_eq!(wake, Wake { queue, count: 1 });
    assert_eq!(read(&mut pipes, r, 2), b"he");
    pipes.close(w, &mut |_| panic!("nobody waits")).unwrap();
    assert_eq!(read(&mut pipes, r, u64::MAX), b"llo");
    assert_eq!(read(&mut pipes, r, 32), b"");
    pipes.close(r, &mut |_| {}).unwrap();
    assert_eq!(pipes.in_use(), (0, 0));
    assert_eq!(pipes.read(r, 1, &mut Fake::none()), Read::Failed(Error::NotOpen));
    assert_eq!(pipes.close(r, &mut |_| {}), Err(Error::NotOpen));
}

/// It knows when it has made the first pipe, to a few ticks, so it knows the key; and about when somebody
/// else has made the next.
#[test]
fn who_guesses_tokens_gets_nowhere() {
    let mut pipes = Pipes::new();
    let own = pipes.create(Asid(5), 1_000_123).unwrap();
    let made = (1_000_000..1_000_400).find(|at| Pipes::new().create(Asid(5), *at) == Ok(own)).unwrap();
    let others = pipes.create(Asid(1), 2_034_567).unwrap();
    let guessed = (2_034_000..2_035_000).find_map(|at| {
        let mut same = Pipes::new();
        same.create(Asid(5), made).unwrap();
        pipes.open(Asid(5), same.create(Asid(1), at).unwrap(), Side::Read).ok()
    });
    assert_eq!(guessed, None, "another's pipe");
    assert_eq!(pipes.open(Asid(5), others, Side::Read), Err(Error::NoPipe), "it has no guess left");
    // Others open it, and so does who has the number next.
    assert!(pipes.open(Asid(6), others, Side::Read).is_ok());
    pipes.gone(Asid(5), &mut |_| {});
    assert!(pipes.open(Asid(5), others, Side::Read).is_ok());
}

#[test]
fn a_reader_waits_for_the_first_writer() {
    let mut pipes = Pipes::new();
    let token = pipes.create(Asid(1), 0).unwrap();
    let r = pipes.open(Asid(2), token, Side::Read).unwrap();
    let Read::Block(queue) = pipes.read(r, 32, &mut Fake::none()) else { panic!() };
    let mut woken = vec![];
    pipes.abandon(Asid(1), token, &[Side::Write], &mut |w| woken.push(w)).unwrap();
    assert_eq!(woken, [Wake { queue, count: 1 }]);
    assert_eq!(read(&mut pipes, r, 32), b"");
    assert_eq!(pipes.open(Asid(3), token, Side::Write), Err(Error::NoPipe));
    assert!(pipes.open(Asid(3), token, Side::Read).is_ok());
}

#[test]
fn a_writer_without_readers() {
    let mut pipes = Pipes::new();
    let token = pipes.create(Asid(1), 0).unwrap();
    let w = pipes.open(Asid(3), token, Side::Write).unwrap();
    for _ in 0..RING_BYTES / 32 {
        write(&mut pipes, w, &[7; 32]);
    }
    let Write::Block(queue) = pipes.write(w, 1, [0; 4]) else { panic!() };
    let r = pipes.open(Asid(2), token, Side::Read).unwrap();
    let mut woken = vec![];
    pipes.gone(Asid(2), &mut |w| woken.push(w));
    assert_eq!(woken, [Wake { queue, count: 1 }]);
    assert_eq!(pipes.write(w, 1, [0; 4]), Write::Failed(Error::NoReader));
    assert_eq!(pipes.read(r, 1, &mut Fake::none()), Read::Failed(Error::NotOpen));
}

#[test]
fn hostile_words() {
    let mut pipes = Pipes::new();
    let (token, r, w) = pair(&mut pipes);
    for left in [33, u64::MAX] {
        // No more than the words can hold.
        assert!(matches!(pipes.write(w, left, [0; 4]), Write::Done { count: 32, .. }));
    }
    assert_eq!(pipes.write(r, 1, [0; 4]), Write::Failed(Error::NotOpen));
    assert_eq!(pipes.read(w, 1, &mut Fake::none()), Read::Failed(Error::NotOpen));
    assert_eq!(pipes.open(Asid(2), token ^ 1 << 40, Side::Read), Err(Error::NoPipe));
    assert_eq!(pipes.open(Asid(2), 0, Side::Read), Err(Error::NoPipe));
    assert_eq!(pipes.abandon(Asid(2), token, &Side::BOTH, &mut |_| {}), Err(Error::NoPipe));
    assert_eq!(pipes.create(Asid(1000), 0), Err(Error::Limit));
    assert_eq!(pipes.open(Asid(1000), token, Side::Read), Err(Error::Limit));
}

#[test]
fn a_family_leaves_pipes_and_ends_to_others() {
    let mut pipes = Pipes::new();
    (1..=20).for_each(|asid| pipes.belongs(Asid(asid), 1));
    let mut tokens = Vec::new();
    for asid in 1..=20 {
        while let Ok(token) = pipes.create(Asid(asid), 0) {
            tokens.push(token);
        }
    }
    assert_eq!((tokens.len(), pipes.create(Asid(20), 0)), (share::PIPES.family, Err(Error::Share)));
    let mut ends = 0;
    for (asid, token) in (1..=20).flat_map(|asid| tokens.iter().map(move |token| (asid, *token))) {
        ends += usize::from(pipes.open(Asid(asid), token, Side::Read).is_ok());
    }
    assert_eq!((ends, pipes.open(Asid(20), tokens[0], Side::Read)), (share::ENDS.family, Err(Error::Share)));
    // Whoever it has made them with: its number is another's now.
    pipes.belongs(Asid(1), 2);
    assert!(pipes.create(Asid(30), 0).is_ok() && pipes.open(Asid(30), tokens[0], Side::Write).is_ok());
    assert_eq!(pipes.create(Asid(2), 0), Err(Error::Share));
}

#[test]
fn one_domain_cannot_take_everything() {
    let mut pipes = Pipes::new();
    let tokens: Vec<u64> = (0..PIPES_PER_DOMAIN).map(|_| pipes.create(Asid(1), 0).unwrap()).collect();
    assert_eq!(pipes.create(Asid(1), 0), Err(Error::Limit));
    assert!(pipes.create(Asid(2), 0).is_ok());
    while pipes.open(Asid(1), tokens[0], Side::Read).is_ok() {}
    assert!(pipes.open(Asid(2), tokens[0], Side::Read).is_ok());
    for asid in [1, 2] {
        pipes.gone(Asid(asid), &mut |_| {});
    }
    assert_eq!(pipes.in_use(), (0, 0));
}

#[test]
fn ends_are_not_confused() {
    let mut pipes = Pipes::new();
    let (_, old, w) = pair(&mut pipes);
    pipes.close(old, &mut |_| {}).unwrap();
    pipes.close(w, &mut |_| {}).unwrap();
    let (_, new, _) = pair(&mut pipes);
    assert_ne!(old, new);
    assert_eq!(pipes.read(old, 1, &mut Fake::none()), Read::Failed(Error::NotOpen));
}

#[test]
fn paths() {
    let token = 0x0123_4567_89ab_cdef;
    let text = path(token, Side::Write);
    assert_eq!(&text, b"/pipe/0123456789abcdef/w");
    let words = |text: &str| pebble_abi::link::pack::<5>(text).unwrap();
    assert_eq!(parse_path(words(core::str::from_utf8(&text).unwrap())), Some((token, Side::Write)));
    for bad in
        ["", "/pipe/0123456789abcdef", "/pipe/0123456789abcdeg/r", "/pipe/0123456789ABCDEF/r", "/pipe/0/r"]
    {
        assert_eq!(parse_path(words(bad)), None, "{bad}");
    }
    assert_eq!(parse_path(words("/pipe/0123456789abcdef/r\0x")), None);
}

proptest! {
    #[test]
    fn ring_is_a_queue(ops in prop::collection::vec((any::<bool>(), 0usize..=32), 0..400)) {
        let mut ring = Ring::new();
        let mut model = VecDeque::new();
        let mut next = 0u8;
        for (put, n) in ops {
            if put && n <= ring.room() {
                let bytes: Vec<u8> = (0..n).map(|i| next.wrapping_add(i as u8)).collect();
                next = next.wrapping_add(n as u8);
                // Junk behind the count does no harm.
                let mut words = pack(&bytes);
                if n < 32 {
                    words[n / 8] |= u64::MAX << (n % 8 * 8);
                }
                ring.put(words, n);
                model.extend(bytes);
            } else if !put {
                let (count, words) = ring.get(n);
                let expect: Vec<u8> = model.drain(..n.min(model.len())).collect();
                prop_assert_eq!(unpack(count, words), expect.clone());
                prop_assert_eq!(words, pack(&expect));
            }
            prop_assert_eq!(ring.len(), model.len());
        }
    }

    #[test]
    fn paths_are_inverse(token in any::<u64>(), write in any::<bool>()) {
        let side = if write { Side::Write } else { Side::Read };
        let text = path(token, side);
        let words = pebble_abi::link::pack::<5>(core::str::from_utf8(&text).unwrap()).unwrap();
        prop_assert_eq!(parse_path(words), Some((token, side)));
    }

    /// The quick ways do what the others do, or nothing.
    #[test]
    fn short_ways_agree(ops in prop::collection::vec((any::<bool>(), 0u64..=12, any::<u64>()), 0..300)) {
        let (mut quick, mut plain) = (Pipes::new(), Pipes::new());
        let (_, r, w) = pair(&mut quick);
        prop_assert_eq!(pair(&mut plain).1, r);
        for (is_write, count, word) in ops {
            let words = [word, !word, 0, 0];
            if is_write {
                let outcome = match quick.write_word(w, count, word) {
                    Some(wake) => Write::Done { count: count as usize, wake },
                    None => quick.write(w, count, words),
                };
                prop_assert_eq!(outcome, plain.write(w, count, words));
            } else {
                let wake = |outcome| if let Read::Data { wake, .. } = outcome { Some(wake.count) } else { None };
                let expected = plain.read(r, count, &mut Fake::none());
                match quick.read_word(r, count, || word % 2 == 0) {
                    (0, _) => prop_assert_eq!(quick.read(r, count, &mut Fake::none()), expected),
                    (BLOCK, queue) => prop_assert_eq!(Read::Block(Queue::numbered(queue)), expected),
                    (n, word) => {
                        let Read::Data { count, words, .. } = expected else { panic!("{expected:?}") };
                        prop_assert_eq!((n, [word, 0, 0, 0], Some(0)), (count as i64, words, wake(expected)));
                    }
                }
            }
        }
    }

    #[test]
    fn any_control_is_safe(control in any::<u64>(), words in any::<[u64; 4]>(), path in any::<[u64; 5]>()) {
        let mut pipes = Pipes::new();
        pair(&mut pipes);
        pipes.read(control, words[0], &mut Fake::none());
        pipes.write(control, words[0], words);
        pipes.read_word(control, words[1], || true);
        pipes.write_word(control, words[1], words[0]);
        let _ = pipes.close(control, &mut |_| {});
        prop_assert_eq!(parse_path(path), None);
    }

    /// Writers and readers in any order of execution, some of which wait elsewhere, some killed: all bytes of
    /// those who live arrive in order, everybody finishes, and nothing is left.
    #[test]
    fn everybody_finishes(
        writers in prop::collection::vec(prop::collection::vec(1usize..=32, 0..40), 1..4),
        readers in prop::collection::vec(1u64..=32, 1..4),
        kill in prop::option::of((0usize..6, 0usize..200)),
        order in prop::collection::vec(0usize..64, 1..60),
        parks in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut pipes = Pipes::new();
        let mut tokens = vec![0u32; QUEUES];
        let token = pipes.create(Asid(1), 9).unwrap();
        struct Thread { asid: u16, control: u64, asleep: Option<Queue>, parked: Option<Queue>, done: bool, job: Job }
        enum Job { Write(VecDeque<usize>), Read(u64) }
        let mut threads = vec![];
        for lengths in writers {
            let asid = 2 + threads.len() as u16;
            let control = pipes.open(asid.into(), token, Side::Write).unwrap();
            threads.push(Thread { asid, control, asleep: None, parked: None, done: false, job: Job::Write(lengths.into()) });
        }
        for max in readers {
            let asid = 2 + threads.len() as u16;
            let control = pipes.open(asid.into(), token, Side::Read).unwrap();
            threads.push(Thread { asid, control, asleep: None, parked: None, done: false, job: Job::Read(max) });
        }
        let (mut sent, mut received) = (vec![], vec![]);
        let mut next = 0u8;
        let called = RefCell::new(Vec::new());
        for step in 0.. {
            // All that wait elsewhere for a queue are woken.
            for queue in called.borrow_mut().drain(..) {
                threads.iter_mut().filter(|t| t.parked == Some(queue)).for_each(|t| t.parked = None);
            }
            let wake_in = |tokens: &mut Vec<u32>, w: Wake| {
                tokens[w.queue.index()] += u32::from(w.count & !PARKED);
                if w.count & PARKED != 0 {
                    called.borrow_mut().push(w.queue);
                }
            };
            if let Some((victim, when)) = kill && step == when {
                let victim = victim % threads.len();
                threads[victim].done = true;
                if let Some(queue) = threads[victim].asleep.take() {
                    pipes.give_up(queue);
                }
                pipes.gone(threads[victim].asid.into(), &mut |w| wake_in(&mut tokens, w));
                if !called.borrow().is_empty() {
                    continue;
                }
            }
            let ready: Vec<usize> = (0..threads.len())
                .filter(|i| !threads[*i].done && threads[*i].parked.is_none())
                .filter(|i| threads[*i].asleep.is_none_or(|q| tokens[q.index()] > 0))
                .collect();
            if ready.is_empty() {
                break;
            }
            let who = ready[order[step % order.len()] % ready.len()];
            let thread = &mut threads[who];
            if let Some(queue) = thread.asleep.take() {
                tokens[queue.index()] -= 1;
            }
            let mut wake = |w: Wake| wake_in(&mut tokens, w);
            match &mut thread.job {
                Job::Write(lengths) => match lengths.front().copied() {
                    None => {
                        pipes.close(thread.control, &mut wake).unwrap();
                        thread.done = true;
                    }
                    Some(n) => {
                        let bytes: Vec<u8> = (0..n).map(|i| next.wrapping_add(i as u8)).collect();
                        // What is said beforehand is true.
                        let ready = pipes.ready(thread.control).unwrap();
                        let written = pipes.write(thread.control, n as u64, pack(&bytes));
                        prop_assert!(ready & READY_WRITE == 0 || !matches!(written, Write::Block(_)));
                        prop_assert_eq!(ready & READY_END != 0, matches!(written, Write::Failed(_)));
                        match written {
                            Write::Done { count, wake: w } => {
                                prop_assert_eq!(count, n);
                                wake(w);
                                next = next.wrapping_add(n as u8);
                                sent.extend(bytes);
                                lengths.pop_front();
                            }
                            Write::Block(queue) if parks[who] => {
                                pipes.park(queue);
                                thread.parked = Some(queue);
                            }
                            Write::Block(queue) => thread.asleep = Some(queue),
                            Write::Failed(error) => {
                                prop_assert_eq!(error, Error::NoReader);
                                lengths.clear();
                            }
                        }
                    }
                },
                Job::Read(max) => {
                    let ready = pipes.ready(thread.control).unwrap();
                    let read = pipes.read(thread.control, *max, &mut Fake::none());
                    prop_assert_eq!(ready & READY_READ != 0, !matches!(read, Read::Block(_)));
                    match read {
                    Read::Data { count: 0, .. } => {
                        pipes.close(thread.control, &mut wake).unwrap();
                        thread.done = true;
                    }
                    Read::Data { count, words, wake: w } => {
                        wake(w);
                        received.extend(unpack(count, words));
                    }
                    Read::Block(queue) if parks[who] => {
                        pipes.park(queue);
                        thread.parked = Some(queue);
                    }
                    Read::Block(queue) => thread.asleep = Some(queue),
                    Read::Failed(error) => prop_assert!(false, "{:?}", error),
                    }
                }
            }
        }
        prop_assert!(threads.iter().all(|t| t.done), "somebody sleeps for ever");
        prop_assert!(sent.starts_with(&received));
        if kill.is_none() {
            prop_assert_eq!(sent, received);
        }
        prop_assert_eq!(pipes.in_use(), (0, 0));
    }
}
