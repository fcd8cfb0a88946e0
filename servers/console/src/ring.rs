//! A queue of bytes in an array.
//!
//! Invariant: `put - got <= N`, both counted modulo 2^32; `N` is a power of two.

pub struct Ring<const N: usize> {
    bytes: [u8; N],
    put: u32,
    got: u32,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Ring<N> {
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two() && N <= 1 << 31) };
        Ring { bytes: [0; N], put: 0, got: 0 }
    }

    pub fn len(&self) -> usize {
        self.put.wrapping_sub(self.got) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.put == self.got
    }

    pub fn room(&self) -> usize {
        N - self.len()
    }

    /// Whether there was room.
    #[must_use]
    pub fn push(&mut self, byte: u8) -> bool {
        let room = self.room() != 0;
        if room {
            self.bytes[self.put as usize % N] = byte;
            self.put = self.put.wrapping_add(1);
        }
        room
    }

    pub fn peek(&self) -> Option<u8> {
        (!self.is_empty()).then(|| self.bytes[self.got as usize % N])
    }

    pub fn pop(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.got = self.got.wrapping_add(1);
        Some(byte)
    }

    /// Holds these bytes, as far as there is room.
    pub fn fill(&mut self, bytes: &[u8]) {
        self.clear();
        let _ = bytes.iter().all(|byte| self.push(*byte));
    }

    pub fn clear(&mut self) {
        self.got = self.put;
    }

    /// From the first to be popped on.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.len() as u32).map(|n| self.bytes[self.got.wrapping_add(n) as usize % N])
    }
}
