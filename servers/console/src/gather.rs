//! Lines in the making.
//!
//! Problem: a write brings 32 bytes a call, and another domain's bytes must not get into the midst of a line.
//! Strategy: each call says how many bytes the writer has left, this call's among them. While more are to
//! come they are kept here, by the open file that they were written to; the last call of a write sends them
//! all, so a prompt without a newline is not late.
//!
//! Invariants:
//! * A writer that never goes on keeps a place and nothing else: who finds all taken sends the bytes of the
//!   one that was given out first.
//! * Bytes leave in the order in which they came in by their file, and once; what is left of a dead domain is
//!   dropped.

use crate::ring::Ring;
use pebble_abi::call::IO_BYTES;

/// Lines of up to so many bytes are whole.
pub const LINE_ROOM: usize = 256;
/// Writers in the midst of a line.
pub const PLACES: usize = 8;
/// The most that one call sends: a line that gives its place up, and its own with what the call brings.
pub const MOST_SENT: usize = 2 * LINE_ROOM + IO_BYTES;

/// Takes a byte, and the control word of the file that it was written to.
pub type Send<'a> = dyn FnMut(u64, u8) + 'a;

pub struct Part {
    /// Control word of the file, or 0: free.
    pub control: u64,
    /// What the next call of the same write says that it has left.
    pub left: u64,
    pub bytes: Ring<LINE_ROOM>,
}

pub struct Gather {
    parts: [Part; PLACES],
    /// The place to be given out next when all are taken.
    next: usize,
}

impl Gather {
    pub const fn new() -> Self {
        Gather { parts: [const { Part { control: 0, left: 0, bytes: Ring::new() } }; PLACES], next: 0 }
    }

    /// A call's bytes, of `left` that the writer has; sends [`MOST_SENT`] bytes at most.
    pub fn write(&mut self, control: u64, left: u64, bytes: &[u8], send: &mut Send) {
        let last = left == bytes.len() as u64;
        let mut at = self.parts.iter().position(|part| part.control == control);
        if let Some(begun) = at
            && self.parts[begun].left != left
        {
            // Another write, of another thread or after one that was broken off.
            self.parts[begun].end(send);
            at = None;
        }
        if last && at.is_none() {
            return bytes.iter().for_each(|byte| send(control, *byte));
        }
        let at = at.unwrap_or_else(|| self.place(send));
        let part = &mut self.parts[at];
        (part.control, part.left) = (control, left - bytes.len() as u64);
        part.add(bytes, send);
        if last {
            part.end(send);
        }
    }

    /// Drops what was written to certain files.
    pub fn forget(&mut self, which: impl Fn(u64) -> bool) {
        self.parts.iter_mut().filter(|part| which(part.control)).for_each(|part| part.end(&mut |_, _| ()));
    }

    /// What is kept.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.control != 0)
    }

    /// A place for the bytes that a predecessor kept.
    pub fn restore(&mut self, control: u64, left: u64) -> Option<&mut Ring<LINE_ROOM>> {
        let part = self.parts.iter_mut().find(|part| part.control == 0)?;
        (part.control, part.left) = (control, left);
        Some(&mut part.bytes)
    }

    fn place(&mut self, send: &mut Send) -> usize {
        self.parts.iter().position(|part| part.control == 0).unwrap_or_else(|| {
            let at = self.next;
            self.next = (at + 1) % PLACES;
            self.parts[at].end(send);
            at
        })
    }
}

impl Part {
    fn add(&mut self, bytes: &[u8], send: &mut Send) {
        if self.bytes.room() < bytes.len() {
            // Whole lines if there are any.
            let mut line = 0;
            self.bytes.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n').for_each(|(_, end)| line = end);
            self.send(line, send);
        }
        if self.bytes.room() < bytes.len() {
            self.send(LINE_ROOM, send);
        }
        for byte in bytes {
            let room = self.bytes.push(*byte);
            debug_assert!(room);
        }
    }

    /// So many bytes, or all.
    fn send(&mut self, count: usize, send: &mut Send) {
        let control = self.control;
        (0..count).map_while(|_| self.bytes.pop()).for_each(|byte| send(control, byte));
    }

    fn end(&mut self, send: &mut Send) {
        self.send(LINE_ROOM, send);
        self.control = 0;
    }
}
