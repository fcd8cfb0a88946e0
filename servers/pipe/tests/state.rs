//! What a successor is handed: every pipe, end and byte, and no waiter; what it must not take it refuses.

mod fake;

use fake::Fake;
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use pebble_pipe::*;
use proptest::prelude::*;

fn saved(pipes: &Pipes) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(pipes.save(|part| {
        bytes.extend_from_slice(part);
        true
    }));
    bytes
}

fn loaded(bytes: &[u8]) -> Result<Pipes, Errno> {
    let mut pipes = Pipes::new();
    pipes.load(FORMAT, bytes).map(|()| pipes)
}

fn drain(pipes: &mut Pipes, control: u64) -> Vec<u8> {
    let mut all = Vec::new();
    while let Read::Data { count: count @ 1.., words, .. } = pipes.read(control, 32, &mut Fake::none()) {
        all.extend(words.iter().flat_map(|w| w.to_le_bytes()).take(count));
    }
    all
}

proptest! {
    /// Whatever has been done, the successor goes on as the old one would have.
    #[test]
    fn a_successor_goes_on(steps in proptest::collection::vec((0u8..8, any::<u64>(), 0u64..40), 0..200)) {
        let mut pipes = Pipes::new();
        let (mut tokens, mut ends) = (Vec::new(), Vec::new());
        for (what, word, n) in steps {
            let end = || ends.get(word as usize % ends.len().max(1)).copied().unwrap_or(word);
            let token = || tokens.get(word as usize % tokens.len().max(1)).copied().unwrap_or(word);
            match what {
                0 => tokens.extend(pipes.create((n as u16).into(), word)),
                1 => ends.extend(pipes.open((n as u16).into(), token(), Side::Read)),
                2 => ends.extend(pipes.open((n as u16).into(), token(), Side::Write)),
                3 | 4 => drop(pipes.write(end(), n, [word, !word, word << 1, 7])),
                5 => drop(pipes.read(end(), n, &mut Fake::none())),
                6 => _ = pipes.close(end(), &mut |_| {}),
                _ => _ = pipes.abandon((n as u16).into(), token(), &[Side::Write], &mut |_| {}),
            }
        }
        let bytes = saved(&pipes);
        let mut next = loaded(&bytes).expect("its own state");
        prop_assert_eq!(next.in_use(), pipes.in_use());
        prop_assert_eq!(saved(&next), bytes);
        pipes.dismiss(&mut |_| {});
        let mut nobody = 0;
        next.dismiss(&mut |_| nobody += 1);
        prop_assert_eq!(nobody, 0, "waiters stay behind");
        for end in ends {
            prop_assert_eq!(drain(&mut pipes, end), drain(&mut next, end));
            prop_assert_eq!(pipes.write(end, 3, [1; 4]), next.write(end, 3, [1; 4]));
        }
        prop_assert_eq!(pipes.create(Asid(9), 1), next.create(Asid(9), 1), "the same tokens");
    }

    /// Nothing that was damaged on the way makes it panic.
    #[test]
    fn damaged_states_are_refused_or_harmless(at in any::<usize>(), bit in 0u8..8, cut in any::<usize>()) {
        let mut pipes = Pipes::new();
        let token = pipes.create(Asid(1), 1).unwrap();
        let r = pipes.open(Asid(2), token, Side::Read).unwrap();
        let w = pipes.open(Asid(3), token, Side::Write).unwrap();
        for _ in 0..20 {
            pipes.write(w, 30, [5; 4]);
        }
        let mut bytes = saved(&pipes);
        prop_assert_eq!(loaded(&bytes[..cut % bytes.len()]).err(), Some(errno::EINVAL), "too short");
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(mut next) = loaded(&bytes) {
            drain(&mut next, r);
            next.write(w, 32, [1; 4]);
            next.gone(Asid(3), &mut |_| {});
            next.gone(Asid(2), &mut |_| {});
            next.gone(Asid(1), &mut |_| {});
        }
        bytes[at] ^= 1 << bit;
        bytes.push(0);
        prop_assert_eq!(loaded(&bytes).err(), Some(errno::EINVAL), "too long");
    }
}

#[test]
fn only_for_one_without_pipes_and_in_its_format() {
    let mut pipes = Pipes::new();
    pipes.create(Asid(1), 1).unwrap();
    let bytes = saved(&pipes);
    assert_eq!(pipes.load(FORMAT, &bytes), Err(errno::EINVAL));
    assert_eq!(Pipes::new().load(FORMAT + 1, &bytes), Err(errno::EINVAL));
    assert!(!pipes.save(|_| false), "no room");
}
