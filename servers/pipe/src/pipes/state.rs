//! The pipes as bytes, for a successor: format 2.
//!
//! Words of 8 bytes, little-endian: the tokens' key and counter, numbers of pipes and of ends. Of each pipe
//! in use its number, flags (bits 8 to 11), creator (16), number of bytes (32) and family (48); its token;
//! its bytes. Of each end that was ever open its number, pipe (16), domain (32) and family (48); its control
//! word, whose generation outlives it. Waiters are not part of it: they repeat their calls. Numbers of ends
//! and of what each domain has follow from the rest.

use super::{ENDS, ENDS_PER_DOMAIN, PIPES};
use super::{End, PIPES_PER_DOMAIN, Pipes, Side, Wake};
use crate::ring::RING_BYTES;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::MAX_DOMAINS;

pub const FORMAT: u64 = 2;

/// Takes words and bytes from the beginning.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Errno> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(errno::EINVAL)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, Errno> {
        let bytes = self.bytes(8)?.try_into().map_err(|_| errno::EINVAL)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

fn is(good: bool) -> Result<(), Errno> {
    if good { Ok(()) } else { Err(errno::EINVAL) }
}

impl Pipes {
    /// Writes the state; false when there is no room for it.
    pub fn save(&self, mut put: impl FnMut(&[u8]) -> bool) -> bool {
        let pipes = || self.pipes.iter().enumerate().filter(|(_, p)| p.token != 0);
        let ends = || self.ends.iter().enumerate().filter(|(_, e)| e.control != 0);
        let [a, b, c] = self.tokens.save();
        let mut words = |words: &[u64]| words.iter().all(|word| put(&word.to_le_bytes()));
        words(&[a, b, c, pipes().count() as u64, ends().count() as u64])
            && ends().all(|(n, e)| {
                let whose = u64::from(e.asid) << 32 | u64::from(e.family) << 48;
                words(&[n as u64 | u64::from(e.pipe) << 16 | whose, e.control])
            })
            && pipes().all(|(n, p)| {
                let flags = [p.had[0], p.had[1], p.abandoned[0], p.abandoned[1]];
                let flags = flags.iter().rev().fold(0, |word, flag| word << 1 | u64::from(*flag));
                let whose = u64::from(p.creator) << 16 | u64::from(p.family) << 48;
                let word = n as u64 | flags << 8 | whose | (p.ring.len() as u64) << 32;
                put(&word.to_le_bytes())
                    && put(&p.token.to_le_bytes())
                    && p.ring.chunks().all(|chunk| put(chunk.get()))
            })
    }

    /// Becomes what a predecessor has saved; an error leaves it useless. Only for one that has no pipes.
    pub fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        is(format == FORMAT && self.in_use() == (0, 0))?;
        let mut from = Source(bytes);
        self.tokens.load([from.word()?, from.word()?, from.word()?]);
        let (pipes, ends) = (from.word()?, from.word()?);
        is(pipes <= PIPES as u64 && ends <= ENDS as u64)?;
        (0..ends).try_for_each(|_| self.load_end(&mut from))?;
        (0..pipes).try_for_each(|_| self.load_pipe(&mut from))?;
        is(from.0.is_empty())?;
        // What is open leads to a pipe that is in use.
        is(self.ends.iter().all(|e| !e.is_open() || self.pipes[usize::from(e.pipe)].token != 0))
    }

    fn load_end(&mut self, from: &mut Source) -> Result<(), Errno> {
        let (word, control) = (from.word()?, from.word()?);
        let (index, pipe, asid) = (word as u16, (word >> 16) as u16, usize::from((word >> 32) as u16));
        let family = (word >> 48) as u16;
        is(usize::from(index) < ENDS && usize::from(pipe) < PIPES && asid < MAX_DOMAINS)?;
        let end = &mut self.ends[usize::from(index)];
        is(control != 0 && control as usize % ENDS == usize::from(index) && end.control == 0)?;
        is(control & End::SIDES != End::SIDES)?;
        *end = End { control, asid: asid as u16, family, pipe: pipe as u8 };
        if end.is_open() {
            let side = if control & End::bit(Side::Read) != 0 { Side::Read } else { Side::Write };
            self.pipes[usize::from(pipe)].ends[side as usize] += 1;
            self.opened[asid] += 1;
            is(self.opened[asid] <= ENDS_PER_DOMAIN)?;
        }
        Ok(())
    }

    fn load_pipe(&mut self, from: &mut Source) -> Result<(), Errno> {
        let (word, token) = (from.word()?, from.word()?);
        let (index, creator) = (word as u8, usize::from((word >> 16) as u16));
        let (len, family) = (usize::from((word >> 32) as u16), (word >> 48) as u16);
        is(usize::from(index) < PIPES && creator < MAX_DOMAINS && len <= RING_BYTES)?;
        let pipe = &mut self.pipes[usize::from(index)];
        is(token != 0 && token as usize % PIPES == usize::from(index) && pipe.token == 0)?;
        let flag = |n: u32| word >> (8 + n) & 1 == 1;
        pipe.token = token;
        (pipe.had, pipe.abandoned) = ([flag(0), flag(1)], [flag(2), flag(3)]);
        (pipe.creator, pipe.family) = (creator as u16, family);
        for chunk in from.bytes(len)?.chunks(8) {
            let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            pipe.ring.put([word, 0, 0, 0], chunk.len());
        }
        self.created[creator] += 1;
        is(self.created[creator] <= PIPES_PER_DOMAIN)
    }

    /// All waiters, who then repeat their calls elsewhere.
    pub fn dismiss(&mut self, wake: &mut impl FnMut(Wake)) {
        for (at, pipe) in self.pipes.iter_mut().enumerate() {
            for side in Side::BOTH {
                if pipe.waiting[side as usize] != 0 {
                    wake(pipe.take_waiting(at, side));
                }
            }
        }
    }
}
