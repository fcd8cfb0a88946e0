//! The bytes in a pipe, put in and taken out a word at a time.
//!
//! Problem: one byte must be cheap, and so must 32. Strategy: the ring is an array of words; up to eight
//! bytes at any byte position are two shifts, whatever their number and alignment, and no loop over bytes.
//!
//! Invariants: `put - got <= RING_BYTES`; a word holds bytes of both ends when the
//! ring is nearly full, so that no byte but those put in is ever written.

const WORDS: usize = 64;
/// Bytes that a pipe holds.
///
/// 512 are 16 full calls, so a pair of domains that move bulk data switch every 16 calls, some tenth of the
/// cost of these calls. More would save less than it costs in resident memory: the rings of all pipes take 32
/// KiB; with 4 KiB each it would be half of the system.
pub const RING_BYTES: usize = WORDS * 8;

pub struct Ring {
    words: [u64; WORDS],
    put: usize,
    got: usize,
}

/// Up to 8 bytes of a ring.
pub(crate) struct Chunk {
    bytes: [u8; 8],
    count: usize,
}

impl Chunk {
    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}

impl Ring {
    pub const fn new() -> Self {
        Ring { words: [0; WORDS], put: 0, got: 0 }
    }

    pub fn len(&self) -> usize {
        self.put - self.got
    }

    pub fn is_empty(&self) -> bool {
        self.put == self.got
    }

    pub fn room(&self) -> usize {
        RING_BYTES - self.len()
    }

    /// Appends the first `count` bytes of `words`, which fit: `count <= 32` and `count <= room()`.
    #[inline]
    pub fn put(&mut self, words: [u64; 4], count: usize) {
        let mut left = count;
        for word in words {
            let bytes = left.min(8);
            if bytes == 0 {
                break;
            }
            let (at, shift) = place(self.put);
            let mask = low_bytes(bytes);
            merge(&mut self.words[at], mask << shift, word << shift);
            if shift + bytes * 8 > 64 {
                merge(&mut self.words[(at + 1) % WORDS], mask >> (64 - shift), word >> (64 - shift));
            }
            self.put += bytes;
            left -= bytes;
        }
    }

    /// Removes up to `max` bytes, 32 at most; the rest of the words is zero.
    #[inline]
    pub fn get(&mut self, max: usize) -> (usize, [u64; 4]) {
        let count = max.min(self.len()).min(32);
        let mut words = [0; 4];
        let mut left = count;
        for word in &mut words {
            let bytes = left.min(8);
            if bytes == 0 {
                break;
            }
            let (at, shift) = place(self.got);
            let mut value = self.words[at] >> shift;
            if shift + bytes * 8 > 64 {
                value |= self.words[(at + 1) % WORDS] << (64 - shift);
            }
            *word = value & low_bytes(bytes);
            self.got += bytes;
            left -= bytes;
        }
        (count, words)
    }

    /// Appends the first `count` bytes of `word`, 1 to 8, if the ring is empty: it starts over at its
    /// beginning, so that those who take turns put in and take out a whole word.
    #[inline]
    pub fn put_word(&mut self, word: u64, count: usize) -> bool {
        let empty = self.is_empty();
        if empty {
            self.words[0] = word;
            self.got = 0;
            self.put = count;
        }
        empty
    }

    /// Removes what there is, if it is no more than `max` bytes and all in the first word.
    #[inline]
    pub fn get_word(&mut self, max: u64) -> Option<(usize, u64)> {
        let count = self.put;
        if self.got != 0 || !(1..=8).contains(&count) || count as u64 > max {
            return None;
        }
        self.got = self.put;
        Some((count, self.words[0] & low_bytes(count)))
    }

    /// What there is, in pieces of at most 8 bytes.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> {
        (self.got..self.put).step_by(8).map(|at| {
            let count = (self.put - at).min(8);
            let bytes = core::array::from_fn(|n| {
                let (word, shift) = place(at + n);
                if n < count { (self.words[word] >> shift) as u8 } else { 0 }
            });
            Chunk { bytes, count }
        })
    }

    pub fn clear(&mut self) {
        self.put = 0;
        self.got = 0;
    }
}

/// Index of the word, and bit of the byte in it.
fn place(position: usize) -> (usize, usize) {
    (position / 8 % WORDS, position % 8 * 8)
}

/// A mask of 1 to 8 bytes.
fn low_bytes(count: usize) -> u64 {
    u64::MAX >> (64 - count * 8)
}

/// Puts the masked bits of `new` in the place of those of `word`.
fn merge(word: &mut u64, mask: u64, new: u64) {
    *word = *word & !mask | new & mask;
}
