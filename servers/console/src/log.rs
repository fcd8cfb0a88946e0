//! The last bytes that programs have written, and who wrote them, whether they still live or not.
//!
//! Problem: domains' numbers are used again, and names are known only to who starts programs. Strategy: one
//! ring of bytes. [`MARK`] and a domain's number stand before what that domain wrote, again every [`STRIDE`]
//! bytes so that the oldest bytes have an owner soon; `MARK`, number 0, the number and the name in two words
//! say that the domain which had the number so far is gone, and what it was called. A number is two bytes
//! with their highest bits set, seven bits in each.
//!
//! Invariant: what a program writes is no mark, nor is anything of its name: that byte is kept as `?`. So
//! nobody passes for another.

/// Bytes that are kept.
pub const LOG_BYTES: usize = 3072;
/// Begins what is no text.
pub const MARK: u8 = 0x1d;
/// Bytes until the writer is named again.
const STRIDE: u64 = 256;
/// Bytes of one answer.
const PIECE: u64 = 32;
/// In an answer, the number of its bytes begins there; below it stands how many were written before its end.
pub const COUNT_SHIFT: u32 = 48;

pub struct Log {
    bytes: [u8; LOG_BYTES],
    /// Bytes put so far, and where the last mark was.
    put: u64,
    marked: u64,
    /// Who wrote last; 0: nobody.
    writer: u8,
    /// Domains that have written and are not gone.
    present: [u8; 32],
}

/// Bytes put, who has written, the bytes that are kept.
pub type Saved<'a> = (u64, &'a [u8; 32], &'a [u8]);

impl Log {
    pub const fn new() -> Self {
        Log { bytes: [0; LOG_BYTES], put: 0, marked: 0, writer: 0, present: [0; 32] }
    }

    /// A byte that a domain has written.
    pub fn put(&mut self, asid: u16, byte: u8) {
        let writer = asid as u8;
        if self.writer != writer || self.put - self.marked >= STRIDE {
            self.marked = self.put;
            self.writer = writer;
            self.present[usize::from(writer / 8)] |= 1 << (writer % 8);
            self.mark(writer);
        }
        self.text(byte);
    }

    /// The domain, which was called so, is gone.
    pub fn gone(&mut self, asid: u16, name: [u64; 2]) {
        let word = &mut self.present[usize::from(asid as u8 / 8)];
        let bit = 1 << (asid % 8);
        if *word & bit != 0 {
            *word &= !bit;
            self.writer = 0;
            self.mark(0);
            self.number(asid as u8);
            name.map(u64::to_le_bytes).as_flattened().iter().for_each(|byte| self.text(*byte));
        }
    }

    fn mark(&mut self, asid: u8) {
        self.push(MARK);
        self.number(asid);
    }

    fn number(&mut self, asid: u8) {
        self.push(0x80 | asid >> 7);
        self.push(0x80 | asid);
    }

    fn text(&mut self, byte: u8) {
        self.push(if byte == MARK { b'?' } else { byte });
    }

    #[inline(never)]
    fn push(&mut self, byte: u8) {
        self.bytes[self.put as usize % LOG_BYTES] = byte;
        self.put += 1;
    }

    /// For a successor: bytes put, who has written (256 bits), and the bytes that are kept. Who writes next
    /// is named again.
    pub fn save(&self, put: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let (late, early) = self.bytes.split_at(self.put as usize % LOG_BYTES);
        let early = if self.put < LOG_BYTES as u64 { &[] } else { early };
        put(&self.put.to_le_bytes()) && put(&self.present) && put(early) && put(late)
    }

    /// What [`save`](Self::save) gave, and what is behind it in the bytes. None: it cannot be that.
    pub fn saved(bytes: &[u8]) -> Option<(Saved<'_>, &[u8])> {
        let (put, bytes) = bytes.split_first_chunk()?;
        let (present, bytes) = bytes.split_first_chunk()?;
        let put = u64::from_le_bytes(*put);
        let (kept, rest) = bytes.split_at_checked(put.min(LOG_BYTES as u64) as usize)?;
        Some(((put, present, kept), rest))
    }

    /// Becomes that.
    pub fn load(&mut self, (put, present, kept): Saved) {
        (self.put, self.present) = (put - kept.len() as u64, *present);
        (self.marked, self.writer) = (0, 0);
        kept.iter().for_each(|byte| self.push(*byte));
    }

    /// The bytes from this one on, or from the oldest if that is gone: where they end, and how many they are
    /// ([`COUNT_SHIFT`]).
    pub fn read(&self, from: u64) -> (u64, [u64; 4]) {
        let start = from.clamp(self.put.saturating_sub(LOG_BYTES as u64), self.put);
        let count = (self.put - start).min(PIECE);
        let mut words = [0; 4];
        for n in 0..count {
            let byte = self.bytes[(start + n) as usize % LOG_BYTES];
            words[n as usize / 8] |= u64::from(byte) << (n % 8 * 8);
        }
        (start + count | count << COUNT_SHIFT, words)
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn all(log: &Log) -> Vec<u8> {
        let (mut bytes, mut from) = (Vec::new(), 0);
        loop {
            let (end, words) = log.read(from);
            let count = (end >> COUNT_SHIFT) as usize;
            if count == 0 {
                return bytes;
            }
            bytes.extend_from_slice(&words.map(u64::to_le_bytes).as_flattened()[..count]);
            from = end & ((1 << COUNT_SHIFT) - 1);
        }
    }

    #[test]
    fn writers_are_told_apart_and_outlived() {
        let mut log = Log::new();
        b"ab".iter().for_each(|byte| log.put(14, *byte));
        log.put(200, b'c');
        log.gone(14, [u64::from_le_bytes(*b"prog\x1d\0\0\0"), 0]);
        log.gone(14, [1, 1]);
        log.gone(15, [1, 1]);
        log.put(200, b'd');
        let expected =
            [&b"\x1d\x80\x8eab\x1d\x81\xc8c\x1d\x80\x80\x80\x8eprog?\0\0\0"[..], &[0; 8], b"\x1d\x81\xc8d"];
        assert_eq!(all(&log), expected.concat());
    }

    #[test]
    fn no_program_writes_a_mark_and_the_oldest_bytes_go() {
        let mut log = Log::new();
        for byte in (0..=255).cycle().take(40_000) {
            log.put(14, byte);
        }
        let bytes = all(&log);
        assert_eq!(bytes.len(), LOG_BYTES);
        let marks: Vec<_> =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == MARK).map(|(at, _)| at).collect();
        assert!(marks.len() >= LOG_BYTES / 512);
        assert!(marks.iter().all(|at| bytes.get(at + 1..at + 3).is_none_or(|owner| owner == [0x80, 0x8e])));
    }
}
