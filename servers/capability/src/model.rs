//! A plain model of capabilities, and a random history over it: the same one drives the table on a host and
//! the running system on the machine, where other domains do the steps.
//!
//! Nothing here knows of nodes' layout or free lists: a capability is an entry of a list with a parent.

use alloc::vec::Vec;
use pebble_abi::capability::FIRST_USER_KIND;
use pebble_abi::errno::{self, Errno};

use crate::{Capability, Flags};

/// Who does the steps: domains by position, names as they give them.
pub trait Actors {
    fn create(&mut self, who: usize, kind: u64, object: u64, rights: u16, flags: Flags)
    -> Result<u16, Errno>;
    fn derive(&mut self, who: usize, name: u64, rights: u16, flags: Flags) -> Result<u16, Errno>;
    /// The receiver's name for it; the error of a portal that refuses is -EACCES.
    fn pass(&mut self, who: usize, name: u64, to: usize) -> Result<u16, Errno>;
    fn consume(&mut self, who: usize, name: u64, rights: u16) -> Result<(), Errno>;
    fn revoke(&mut self, who: usize, name: u64) -> Result<(), Errno>;
    fn drop(&mut self, who: usize, name: u64) -> Result<(), Errno>;
    /// The object without its maker.
    fn look(&mut self, who: usize, name: u64) -> Result<Capability, Errno>;
}

struct Entry {
    name: u16,
    holder: usize,
    what: Capability,
    /// Serial number of what it came from; 0: nothing.
    parent: u64,
    serial: u64,
}

/// A source of random numbers that needs nothing (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Most that exist at once.
const MOST: usize = 200;

pub struct Model {
    entries: Vec<Entry>,
    actors: usize,
    serial: u64,
    random: Random,
    /// Steps that did something, so that a history of nothing but refusals shows.
    pub done: u64,
    pub refused: u64,
}

/// Where the real thing differs from the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    pub step: u64,
    pub what: &'static str,
}

impl Model {
    pub fn new(actors: usize, seed: u64) -> Self {
        Model { entries: Vec::new(), actors, serial: 0, random: Random(seed | 1), done: 0, refused: 0 }
    }

    fn find(&self, who: usize, name: u64) -> Option<usize> {
        self.entries.iter().position(|e| e.holder == who && u64::from(e.name) == name)
    }

    /// Mostly a name that this actor has, at times somebody else's, at times nonsense.
    fn name(&mut self, who: usize) -> u64 {
        let own = self.entries.iter().filter(|e| e.holder == who).count() as u64;
        match self.random.below(16) {
            0 => self.random.below(4096),
            1 if !self.entries.is_empty() => {
                let n = self.random.below(self.entries.len() as u64);
                self.entries[n as usize].name.into()
            }
            _ if own > 0 => {
                let n = self.random.below(own) as usize;
                self.entries.iter().filter(|e| e.holder == who).nth(n).map_or(0, |e| e.name.into())
            }
            _ => u64::MAX,
        }
    }

    fn add(&mut self, name: u16, holder: usize, what: Capability, parent: u64) -> Result<(), &'static str> {
        if self.entries.iter().any(|e| e.name == name) {
            return Err("a name was given twice");
        }
        self.serial += 1;
        self.entries.push(Entry { name, holder, what, parent, serial: self.serial });
        Ok(())
    }

    fn remove(&mut self, at: usize) {
        let gone = self.entries.swap_remove(at);
        for e in self.entries.iter_mut().filter(|e| e.parent == gone.serial) {
            e.parent = gone.parent;
        }
    }

    fn revoke(&mut self, at: usize) {
        let mut doomed = Vec::from([self.entries[at].serial]);
        let mut n = 0;
        while let Some(parent) = doomed.get(n).copied() {
            doomed.extend(self.entries.iter().filter(|e| e.parent == parent).map(|e| e.serial));
            n += 1;
        }
        self.entries.retain(|e| !doomed[1..].contains(&e.serial));
    }

    fn agree<V>(
        &mut self,
        real: Result<V, Errno>,
        model: Result<(), Errno>,
    ) -> Result<Option<V>, &'static str> {
        match (real, model) {
            (Ok(value), Ok(())) => {
                self.done += 1;
                Ok(Some(value))
            }
            (Err(a), Err(b)) if a == b => {
                self.refused += 1;
                Ok(None)
            }
            (Ok(_), Err(_)) => Err("what must be refused was done"),
            (Err(_), Ok(())) => Err("what must be done was refused"),
            _ => Err("the error is another one"),
        }
    }

    /// One random step in both.
    pub fn step(&mut self, real: &mut impl Actors) -> Result<(), &'static str> {
        let who = self.random.below(self.actors as u64) as usize;
        let name = self.name(who);
        let found = self.find(who, name);
        let bits = self.random.next();
        let (rights, flags) =
            (bits as u16 & 15, Flags { transfer: bits >> 8 & 3 != 0, once: bits >> 10 & 3 == 0 });
        let old = found.map(|at| self.entries[at].what);
        let held = old.map(|_| ()).ok_or(errno::EBADF);
        match self.random.below(if self.entries.len() < MOST { 20 } else { 8 }) {
            8..12 => {
                let (kind, object) = (u64::from(FIRST_USER_KIND) + bits % 3, bits >> 16 & 7);
                let created = real.create(who, kind, object, rights, flags);
                if let Some(name) = self.agree(created, Ok(()))? {
                    let what = Capability { kind: kind as u16, object: object as u32, rights, flags };
                    self.add(name, who, what, 0)?;
                }
            }
            12..15 => {
                let may = old.is_some_and(|o| {
                    rights & !o.rights == 0 && o.flags.transfer >= flags.transfer && !o.flags.once
                });
                let model = held.and_then(|()| if may { Ok(()) } else { Err(errno::EPERM) });
                let derived = real.derive(who, name, rights, flags);
                if let (Some(name), Some(at)) = (self.agree(derived, model)?, found) {
                    let what = Capability { rights, flags, ..self.entries[at].what };
                    self.add(name, who, what, self.entries[at].serial)?;
                }
            }
            0..2 => {
                let may = old.is_some_and(|o| rights & !o.rights == 0);
                let model = held.and_then(|()| if may { Ok(()) } else { Err(errno::EPERM) });
                let used = real.consume(who, name, rights);
                if let (Some(()), Some(at)) = (self.agree(used, model)?, found)
                    && self.entries[at].what.flags.once
                {
                    self.remove(at);
                }
            }
            2..5 => {
                let dropped = real.drop(who, name);
                if let (Some(()), Some(at)) = (self.agree(dropped, held)?, found) {
                    self.remove(at);
                }
            }
            5..7 => {
                let revoked = real.revoke(who, name);
                if let (Some(()), Some(at)) = (self.agree(revoked, held)?, found) {
                    self.revoke(at);
                }
            }
            7 => {
                let looked = real.look(who, name);
                if let Some(seen) = self.agree(looked, held)?
                    && old != Some(seen)
                {
                    return Err("it looks different");
                }
            }
            _ => {
                let to = self.random.below(self.actors as u64) as usize;
                let may = old.is_some_and(|o| o.flags.transfer);
                let passed = real.pass(who, name, to);
                if let (Some(name), Some(at)) =
                    (self.agree(passed, if may { Ok(()) } else { Err(errno::EACCES) })?, found)
                {
                    let (what, parent) = (self.entries[at].what, self.entries[at].serial);
                    self.add(name, to, what, parent)?;
                    if what.flags.once {
                        self.remove(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// So many steps.
    pub fn run(&mut self, real: &mut impl Actors, steps: u64) -> Result<(), Difference> {
        (0..steps).try_for_each(|step| self.step(real).map_err(|what| Difference { step, what }))
    }

    /// Every capability there is looks as it should, and there are no others: `used` are in use.
    pub fn check(&mut self, real: &mut impl Actors, used: u64) -> Result<(), &'static str> {
        if used != self.entries.len() as u64 {
            return Err("not so many are in use as were made");
        }
        for e in &self.entries {
            if real.look(e.holder, e.name.into()) != Ok(e.what) {
                return Err("one looks different");
            }
        }
        Ok(())
    }
}
