//! The driver: a million random steps, each done by an actor on the machine and by the model.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use pebble::abi::errno::{self, Errno};
use pebble::io;
use pebble::link::{Import, More};
use pebble::power::Power;
use pebble_capability::model::{Actors, Model};
use pebble_capability::{Capability, Flags};
use pebble_capability_test::{ACTORS, Step};

pebble::import! {
    ACTOR0 = "actor0.do";
    ACTOR1 = "actor1.do";
    ACTOR2 = "actor2.do";
    ACTOR3 = "actor3.do";
    ACTOR4 = "actor4.do";
    ACTOR5 = "actor5.do";
    COUNT: cap::Count;
}
pebble::component!(main);

const POWER: Power = Power::new(0);
const STEPS: u64 = 1_000_000;
const SEED: u64 = 19_990_606;

/// What was asked last, and the last error: said where the two differ.
static LAST: AtomicI64 = AtomicI64::new(0);
static ERROR: AtomicI64 = AtomicI64::new(0);

struct Machine;

fn ask(who: usize, step: Step, words: [u64; 3]) -> Result<(u64, More), Errno> {
    let actors: [&Import; ACTORS] = [&ACTOR0, &ACTOR1, &ACTOR2, &ACTOR3, &ACTOR4, &ACTOR5];
    let actor = actors.get(who).ok_or(errno::EINVAL)?;
    let [a, b, c] = words;
    LAST.store(step as i64, Relaxed);
    let (value, more) = actor.call_wide([step as u64, a, b, c]).map_err(|_| errno::EIO)?;
    let value = Errno::answer(value).inspect_err(|error| ERROR.store(error.number(), Relaxed))?;
    Ok((value, more))
}

fn strength(rights: u16, flags: Flags) -> u64 {
    u64::from(rights) | flags.bits() << 16
}

impl Actors for Machine {
    fn create(
        &mut self,
        who: usize,
        kind: u64,
        object: u64,
        rights: u16,
        flags: Flags,
    ) -> Result<u16, Errno> {
        ask(who, Step::Create, [kind, object, strength(rights, flags)]).map(|(name, _)| name as u16)
    }

    fn derive(&mut self, who: usize, name: u64, rights: u16, flags: Flags) -> Result<u16, Errno> {
        ask(who, Step::Derive, [name, strength(rights, flags), 0]).map(|(name, _)| name as u16)
    }

    fn pass(&mut self, who: usize, name: u64, to: usize) -> Result<u16, Errno> {
        ask(who, Step::Pass, [name, to as u64, 0]).map(|(name, _)| name as u16)
    }

    fn consume(&mut self, who: usize, name: u64, rights: u16) -> Result<(), Errno> {
        ask(who, Step::Use, [name, rights.into(), 0]).map(|_| ())
    }

    fn revoke(&mut self, who: usize, name: u64) -> Result<(), Errno> {
        ask(who, Step::Revoke, [name, 0, 0]).map(|_| ())
    }

    fn drop(&mut self, who: usize, name: u64) -> Result<(), Errno> {
        ask(who, Step::Drop, [name, 0, 0]).map(|_| ())
    }

    fn look(&mut self, who: usize, name: u64) -> Result<Capability, Errno> {
        let (_, [kind, object, rights, flags]) = ask(who, Step::Look, [name, 0, 0])?;
        let flags = Flags::from_bits(flags)?;
        Ok(Capability { kind: kind as u16, object: object as u32 & 0xffff, rights: rights as u16, flags })
    }
}

fn verdict() -> alloc::string::String {
    let mut model = Model::new(ACTORS, SEED);
    if let Err(difference) = model.run(&mut Machine, STEPS) {
        let (asked, error) = (LAST.load(Relaxed), Errno::new(ERROR.load(Relaxed)));
        return alloc::format!(
            "step {}: {}; asked {asked}, the last error is {error:?}; {:?}",
            difference.step,
            difference.what,
            COUNT.call()
        );
    }
    let used = COUNT.call().map_or(u64::MAX, |(_, [used, ..])| used);
    match model.check(&mut Machine, used) {
        Ok(()) => alloc::format!("{STEPS} steps agree, {} done, {} refused", model.done, model.refused),
        Err(what) => alloc::format!("in the end: {what}"),
    }
}

fn main() -> i64 {
    let Ok(console) = io::open("/dev/console") else { return 1 };
    let _ = console.write(alloc::format!("capability: {}\n", verdict()).as_bytes());
    POWER.off(0);
    0
}
