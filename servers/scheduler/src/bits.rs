//! Bits, one for each thread or domain: what is rarely looked at is kept small.

/// 256 of them.
#[repr(C)]
pub(crate) struct Bits([u8; 32]);

impl Bits {
    pub(crate) const NONE: Self = Bits([0; 32]);

    pub(crate) fn has(&self, n: u8) -> bool {
        self.0[usize::from(n / 8)] >> (n % 8) & 1 != 0
    }

    /// What it was before.
    pub(crate) fn set(&mut self, n: u8, to: bool) -> bool {
        let before = self.has(n);
        self.0[usize::from(n / 8)] ^= u8::from(before != to) << (n % 8);
        before
    }
}
