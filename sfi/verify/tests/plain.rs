//! The short way against the long one: what `plain` and `brief` accept, `decode` and `step` accept with the
//! same length and state.

mod common;

use common::decode;
use common::emulator::Rng;
use pebble_sfi_verify::plain::{confines, plain};
use pebble_sfi_verify::state::{BASE, Pending, SEG, State, Word, ZX, saved};
use pebble_sfi_verify::step::{Flow, brief, step};
use pebble_sfi_verify::table::class;
use pebble_sfi_verify::{Level, Module};

const AT: u32 = 0x3_0000;

fn module(level: Level) -> Module<'static> {
    Module {
        level,
        text: &[],
        text_at: 0x2_0000,
        ftab_size: 64,
        rodata: &[],
        rodata_at: 0,
        data: 0x10_0000..0x20_0000,
        facts: &[],
        labels: &[],
        exports: &[],
        imports: 4,
    }
}

/// A state between instructions, with facts at random: often none, often many.
fn state(rng: &mut Rng) -> State {
    let mut some = || rng.next() & rng.next() & if rng.below(2) == 0 { 0 } else { 0xffcf };
    let facts = some() << ZX | some() << BASE | some() << SEG;
    let slots = [0, 1 << 28 | 1, 2 << 28 | 0x21][rng.below(3)];
    let mut state = State::new(Word::of(slots, -8 * rng.below(3) as i32), facts);
    for slack in &mut state.slack {
        *slack = [0, 64, 4096, 1 << 16, 1 << 30][rng.below(5)];
    }
    state.dynamic = rng.below(4) == 0;
    state.pushed_rbp = (rng.below(3) == 0).then_some((0, 0));
    state
}

/// The long way; `None` if it refuses.
fn long(module: &Module<'_>, state: &mut State, bytes: &[u8; 32]) -> Option<(u32, Flow)> {
    let insn = decode(bytes, 0).ok()?;
    let flow = step(module, 0x2_0038, state, &insn, AT).ok()?;
    Some((insn.len as u32, flow))
}

/// Whether a short way knew the instruction.
fn compare(bytes: &[u8; 32], rng: &mut Rng) -> bool {
    let level = if rng.below(2) == 0 { Level::Full } else { Level::Write };
    let module = module(level);
    let before = state(rng);
    let (mut short, mut full) = (before.clone(), before.clone());
    let len = plain(bytes, &mut short.known, confines(level == Level::Full));
    let done = match len {
        0 => brief(&mut short, bytes, AT),
        len => Some(Ok((len as u32, Flow::Next))),
    };
    let Some(done) = done else {
        assert_eq!(short, before, "{bytes:02x?}: left, but changed");
        return false;
    };
    let judged = long(&module, &mut full, bytes);
    match done {
        Ok(done) => {
            assert_eq!(Some(done), judged, "{level:?} {bytes:02x?} {before:?}");
            // `lea` with a displacement of 0 is a copy, which only the long way sees.
            if decode(bytes, 0).is_ok_and(|insn| insn.class == class::LEA && insn.disp == 0) {
                assert_eq!(short.known & !full.known, 0, "{level:?} {bytes:02x?} {before:?}");
                short.known = full.known;
            }
            assert_eq!(short, full, "{level:?} {bytes:02x?} {before:?}");
            assert_eq!(full.pending, Pending::Nothing);
            assert_eq!(full.saved, saved(full.slots), "{bytes:02x?} {before:?}");
        }
        Err(rule) => assert_eq!(judged, None, "{rule:?} {bytes:02x?} {before:?}"),
    }
    true
}

/// Opcodes with and without prefixes, everything behind them at random.
#[test]
fn random_code() {
    const BEFORE: [&[u8]; 14] = [
        &[],
        &[],
        &[0x65, 0x67],
        &[0x65, 0x67, 0x66],
        &[0x65, 0x67, 0xf3],
        &[0x65],
        &[0x67],
        &[0x66],
        &[0xf3],
        &[0xf2],
        &[0xf0],
        &[0x66, 0xf3],
        &[0x2e],
        &[0x65, 0x67, 0x65],
    ];
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let rounds: u64 = std::env::var("PLAIN_ROUNDS").map_or(4_000_000, |n| n.parse().unwrap());
    let mut known = 0;
    for _ in 0..rounds {
        let mut bytes = [0u8; 32];
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next().to_le_bytes()));
        let mut at = 0;
        let mut put = |new: &[u8]| {
            bytes[at..at + new.len()].copy_from_slice(new);
            at += new.len();
        };
        put(BEFORE[rng.below(BEFORE.len())]);
        if rng.below(2) == 0 {
            put(&[0x40 | rng.below(16) as u8]);
        }
        if rng.below(3) == 0 {
            put(&[0x0f]);
        }
        known += compare(&bytes, &mut rng) as u64;
    }
    println!("{known} of {rounds}");
    assert!(known > rounds / 25, "{known} of {rounds}");
}

/// Every opcode with every ModRM, SIB bytes and REX: the tables have no other dimension.
#[test]
fn every_shape() {
    let mut rng = Rng(77);
    let mut known = 0;
    for row in [&[][..], &[0x66], &[0xf3], &[0xf2], &[0x65, 0x67], &[0x65, 0x67, 0x66]] {
        for two in [&[][..], &[0x0f]] {
            for op in 0..=255u8 {
                for modrm in 0..=255u8 {
                    let mut bytes = [0u8; 32];
                    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rng.next().to_le_bytes()));
                    let rex = 0x40 | rng.below(16) as u8;
                    let rex = if rng.below(3) == 0 { &[][..] } else { &[rex] };
                    let code = [row, rex, two, &[op, modrm]].concat();
                    bytes[..code.len()].copy_from_slice(&code);
                    known += compare(&bytes, &mut rng) as u64;
                }
            }
        }
    }
    assert!(known > 50_000, "{known}");
}
