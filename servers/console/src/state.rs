//! The console's state as bytes, for a successor: format 1.
//!
//! Flags, controller, read part of the line, lengths of line, input and output (16 bits each, little-endian), then the bytes of the three. Waiters are not
//! part of it: they repeat their calls.

use crate::console::{Console, QUEUES, Queue};
use crate::line::LineDiscipline;
use crate::ring::Ring;
use crate::uart::Registers;
use pebble_abi::errno;

pub const FORMAT: u64 = 1;

const HEADER: usize = 12;

impl<R: Registers> Console<R> {
    /// Writes the state; false when there is no room for it.
    pub fn save(&self, mut put: impl FnMut(&[u8]) -> bool) -> bool {
        let (line, read, ready, after_cr) = self.line.save();
        let flags = [self.raw, self.silent, self.returned, self.interrupted, ready, after_cr];
        let flags = flags.iter().rev().fold(0, |word, flag| word << 1 | u16::from(*flag));
        let lengths = [line.len(), self.input.len(), self.output.len()].map(|len| len as u16);
        let [a, b, c] = lengths;
        let header = [flags, self.controller, read as u16, a, b, c].map(u16::to_le_bytes);
        let bytes = self.input.bytes().chain(self.output.bytes());
        put(header.as_flattened()) && put(line) && bytes.map(|byte| [byte]).all(|byte| put(&byte))
    }

    /// Becomes what a predecessor has saved, or stays as it is.
    pub fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), i64> {
        let (header, rest) =
            bytes.split_at_checked(HEADER).filter(|_| format == FORMAT).ok_or(errno::EINVAL)?;
        let word = |n: usize| u16::from_le_bytes([header[2 * n], header[2 * n + 1]]);
        let flag = |n: u32| word(0) >> n & 1 == 1;
        let (line, rest) = rest.split_at_checked(word(3).into()).ok_or(errno::EINVAL)?;
        let (input, output) = rest.split_at_checked(word(4).into()).ok_or(errno::EINVAL)?;
        if output.len() != usize::from(word(5)) {
            return Err(errno::EINVAL);
        }
        let line = LineDiscipline::load((line, word(2).into(), flag(4), flag(5))).ok_or(errno::EINVAL)?;
        let (input, output) = (filled(input)?, filled(output)?);
        (self.line, self.input, self.output, self.controller) = (line, input, output, word(1));
        (self.raw, self.silent, self.returned, self.interrupted) = (flag(0), flag(1), flag(2), flag(3));
        Ok(())
    }

    /// All waiters, who then repeat their calls elsewhere.
    pub fn dismiss(&mut self, wake: &mut impl FnMut(Queue, u16)) {
        for queue in [Queue::Line, Queue::Raw, Queue::Interrupt, Queue::Output] {
            self.wake_all(queue, wake);
        }
        const { assert!(QUEUES == 4) };
    }
}

fn filled<const N: usize>(bytes: &[u8]) -> Result<Ring<N>, i64> {
    let mut ring = Ring::new();
    if bytes.iter().all(|byte| ring.push(*byte)) { Ok(ring) } else { Err(errno::EINVAL) }
}
