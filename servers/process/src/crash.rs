//! What a dead domain leaves, in words: lines that a person can read and `pebble crash` decodes.
//!
//! Problem: the console has a few lines, and the machine neither unwind tables nor sources. Strategy:
//! registers as they were, and of the stack only what looks like an address of its code or of itself: enough
//! to unwind with the tables on the host, and nothing of what the program computed with. Behind `text` stands
//! a number made of the program's code, by which the host knows its file again.
//!
//! ```text
//! crash 14: program bin/deep text 8c7ab9d05a1b44ff
//! crash 14: pc=10a34 ra=10a50 sp=207feed0 ...
//! crash 14: call deep.call from domain 13 (bin/client) at 0x10120
//! crash 14: seems called from second+0x10 first+0x12 main+0x8
//! crash 14: stack +18:10a62 +20:207fef00 ...
//! crash 14: end
//! ```
//!
//! Invariant: whatever lies in the copies, the lines are bounded in number and length; nothing is followed,
//! only compared.

use crate::elf::{Image, Segment};
use core::fmt;
use pebble_abi::map::{HEAP_END, IMAGE_VA, STACK_SLOT};
use pebble_arch::{Arch, Layout};

/// Lines of each kind, at most; a line of the stack has so many words.
pub const STACK_WORDS: usize = 64;
pub const WORDS_A_LINE: usize = 6;
pub const REGISTERS_A_LINE: usize = 6;
/// Callers that are named.
pub const CALLERS: usize = 8;
/// Frames of the invocation stack that are looked at.
pub const FRAMES: usize = 16;

/// Name and value of a register in a fault's frame; those that are zero are left out.
pub fn registers(layout: &'static Layout, frame: &[u64]) -> impl Iterator<Item = (&'static str, u64)> {
    layout.registers.iter().map(|r| (r.name, frame[r.word])).filter(|(_, value)| *value != 0)
}

/// A program's code, by which addresses are judged; of a component of the image there is none.
pub struct Code<'a>(pub Option<&'a Image<'a>>);

impl Code<'_> {
    fn executable(&self) -> impl Iterator<Item = &Segment<'_>> {
        self.0.iter().flat_map(|image| image.segments.iter().filter(|s| s.execute))
    }

    /// The number that tells this code from another: FNV-1a, 64 bits.
    pub fn number(&self) -> u64 {
        let bytes = self.executable().flat_map(|segment| segment.bytes);
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    }

    /// Whether a function may return to this address: behind a call, which may be the last instruction that
    /// there is.
    pub fn returns<A: Arch>(&self, address: u64) -> bool {
        if self.0.is_none() {
            return A::is_aligned(address) && (IMAGE_VA..HEAP_END).contains(&address);
        }
        let before = || {
            let segment =
                self.executable().find(|s| address.wrapping_sub(s.address + 1) < s.bytes.len() as u64)?;
            segment.bytes.get(..(address - segment.address) as usize)
        };
        A::is_aligned(address) && before().is_some_and(A::follows_call)
    }

    /// Whether a word of the stack helps to unwind it.
    pub fn telling<A: Arch>(&self, word: u64, sp: u64) -> bool {
        let same_stack = word > sp && word <= sp | (STACK_SLOT - 1);
        same_stack && word.is_multiple_of(8) || self.returns::<A>(word)
    }
}

/// A line of registers.
pub struct Registers(pub [Option<(&'static str, u64)>; REGISTERS_A_LINE]);

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().flatten().try_for_each(|(name, value)| write!(f, " {name}={value:x}"))
    }
}

/// A line of words of the stack, each with its distance from the stack pointer.
pub struct Words<'a>(pub &'a [(u64, u64)]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(offset, word)| write!(f, " +{offset:x}:{word:x}"))
    }
}

/// So many of something at once, and so many a second: what programs bring about by dying again and again.
pub struct Patience {
    most: u64,
    each_second: u64,
    left: u64,
    since: u64,
}

impl Patience {
    const fn new(most: u64, each_second: u64) -> Self {
        Patience { most, each_second, left: most, since: 0 }
    }

    /// Crashes that are told in full: they shall not fill the console.
    pub const fn for_crashes() -> Self {
        Self::new(4, 4)
    }

    /// Bytes of program files that are read to name functions, while everybody waits for the undertaker: 5.5
    /// instructions each, which are 3.7 for the number of the code.
    pub const fn for_names() -> Self {
        Self::new(3 << 20, 768 << 10)
    }

    /// Whether there are so many left, `now` in ticks of which a second has `second`.
    pub fn granted(&mut self, wanted: u64, now: u64, second: u64) -> bool {
        let more = now.saturating_sub(self.since).saturating_mul(self.each_second) / second;
        if more > 0 {
            (self.left, self.since) = (self.left.saturating_add(more).min(self.most), now);
        }
        let granted = wanted <= self.left;
        self.left -= if granted { wanted } else { 0 };
        granted
    }
}
