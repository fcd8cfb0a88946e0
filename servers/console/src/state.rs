//! The console's state as bytes, for a successor: format 3.
//!
//! Flags, controller, read part of the line, lengths of line, input and output (16 bits each, little-endian),
//! files opened (32 bits), the foreground (256 bits), the log (see there), then the bytes of the three; then
//! each write that has not come to its end: file, bytes left to come, length (64 bits each), bytes. Waiters
//! are not part of it: they repeat their calls.

use crate::console::{Console, INPUT_BYTES, OUTPUT_BYTES, QUEUES, Queue};
use crate::front::Front;
use crate::gather::Gather;
use crate::line::LINE_BYTES;
use crate::log::Log;
use crate::uart::Registers;
use pebble_abi::errno::{self, Errno};

pub const FORMAT: u64 = 3;

const HEADER: usize = 16;
const PART_HEADER: usize = 24;

impl<R: Registers> Console<R> {
    /// Writes the state; false when there is no room for it.
    pub fn save(&self, put: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let (line, read, ready, after_cr) = self.line.save();
        let flags = [self.raw, self.silent, self.returned, self.interrupted, ready, after_cr];
        let flags = flags.iter().rev().fold(0, |word, flag| word << 1 | u16::from(*flag));
        let lengths = [line.len(), self.input.len(), self.output.len()].map(|len| len as u16);
        let [a, b, c] = lengths;
        let header = [flags, self.controller, read as u16, a, b, c].map(u16::to_le_bytes);
        let bytes = self.input.bytes().chain(self.output.bytes());
        put(header.as_flattened())
            && put(&self.opened.to_le_bytes())
            && put(self.front.save())
            && self.log.save(put)
            && put(line)
            && bytes.map(|byte| [byte]).all(|byte| put(&byte))
            && self.gather.parts().all(|part| {
                let words = [part.control, part.left, part.bytes.len() as u64].map(u64::to_le_bytes);
                put(words.as_flattened()) && part.bytes.bytes().all(|byte| put(&[byte]))
            })
    }

    /// Becomes what a predecessor has saved, or stays as it is, but for writes that were not at their end.
    pub fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        let (header, rest) =
            bytes.split_at_checked(HEADER).filter(|_| format == FORMAT).ok_or(errno::EINVAL)?;
        let word = |n: usize| u16::from_le_bytes([header[2 * n], header[2 * n + 1]]);
        let flag = |n: u32| word(0) >> n & 1 == 1;
        let (front, rest) = rest.split_first_chunk().ok_or(errno::EINVAL)?;
        let (log, rest) = Log::saved(rest).ok_or(errno::EINVAL)?;
        let (line, rest) = rest.split_at_checked(word(3).into()).ok_or(errno::EINVAL)?;
        let (input, rest) = rest.split_at_checked(word(4).into()).ok_or(errno::EINVAL)?;
        let (output, parts) = rest.split_at_checked(word(5).into()).ok_or(errno::EINVAL)?;
        let read = usize::from(word(2));
        if line.len() > LINE_BYTES
            || read > line.len()
            || input.len() > INPUT_BYTES
            || output.len() > OUTPUT_BYTES
        {
            return Err(errno::EINVAL);
        }
        gather(&mut self.gather, parts).ok_or(errno::EINVAL)?;
        self.line.load((line, read, flag(4), flag(5)));
        self.input.fill(input);
        self.output.fill(output);
        self.controller = word(1);
        self.opened = u32::from(word(7)) << 16 | u32::from(word(6));
        self.front = Front::load(*front);
        self.log.load(log);
        (self.raw, self.silent, self.returned, self.interrupted) = (flag(0), flag(1), flag(2), flag(3));
        Ok(())
    }

    /// All waiters, who then repeat their calls elsewhere.
    pub fn dismiss(&mut self, wake: &mut impl FnMut(Queue)) {
        for queue in [Queue::Line, Queue::Raw, Queue::Interrupt, Queue::Output, Queue::Background] {
            self.wake_all(queue, wake);
        }
        const { assert!(QUEUES == 5) };
    }
}

/// The writes that were not at their end.
fn gather(into: &mut Gather, mut rest: &[u8]) -> Option<()> {
    into.forget(|_| true);
    while !rest.is_empty() {
        let (header, more) = rest.split_first_chunk::<PART_HEADER>()?;
        let word =
            |at: usize| header[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (bytes, more) = more.split_at_checked(word(16) as usize)?;
        let part = into.restore(word(0), word(8))?;
        bytes.iter().all(|byte| part.push(*byte)).then_some(())?;
        rest = more;
    }
    Some(())
}
