//! Frames of traps on the invocation stack, in neutral words; and the one by which a thread starts.

use crate::Arch;
use pebble_abi::map::{self, GATE_VA};
use pebble_abi::thread;

/// Where a trap's frame keeps what, in words from its lowest; that of a domain that uses floating point has
/// [`float_words`](Self::float_words) more below.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// All words, the last of which is the address of the return code.
    pub words: usize,
    pub float_words: usize,
    pub pc: usize,
    /// The address space that the trap has left.
    pub space: usize,
    /// Stack descriptor that the handler's return gives back (exceptions only); of a wait for a stack the
    /// cause of the trap that lacks it.
    pub desc: usize,
    /// Registers: return address, stack pointer, thread pointer.
    pub link: usize,
    pub stack: usize,
    pub thread: usize,
    /// The index of a portal that is invoked.
    pub index: usize,
    /// The first argument; the result, and behind it the status of a call.
    pub argument: usize,
    pub value: usize,
    pub status: usize,
    /// All that one wants to see of a thread, in the order in which one reads it: program counter, return
    /// address, stack pointer first.
    pub registers: &'static [Register],
    /// Registers that the calling convention preserves, the thread pointer the last: words in a thread block,
    /// and in the frame of a call that keeps them.
    pub preserved: usize,
    /// The same of floating-point registers, in such a frame.
    pub float_preserved: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub name: &'static str,
    pub word: usize,
    /// Its number in tables that tell how a stack is unwound (DWARF); the program counter has none.
    pub dwarf: Option<u16>,
}

impl Layout {
    /// Words of a frame.
    pub const fn all_words(&self, float: bool) -> usize {
        self.words + if float { self.float_words } else { 0 }
    }

    /// Offset in the thread block of a word of the frame whose top word is there.
    pub const fn offset(&self, top: u64, word: usize) -> u64 {
        (top + 8).wrapping_sub((self.words - word) as u64 * 8)
    }
}

/// A thread that has not run yet.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub tid: u16,
    pub home: u16,
    /// Root of its home's page tables.
    pub root: u64,
    /// Its home uses floating point.
    pub float: bool,
    pub entry: u64,
    pub argument: u64,
    /// Initial stack pointer.
    pub stack: u64,
    /// Portal code: where the thread ends, and what returns from a trap of its home.
    pub thread_end: u64,
    pub trap_return: u64,
}

impl Start {
    /// The words of its block, which is zero otherwise, with their offsets. One frame is on its invocation
    /// stack, that of an interrupt: returning from it is how the thread starts.
    pub fn words<A: Arch>(&self) -> [(u64, u64); 9] {
        let layout = &A::LAYOUT;
        let top = thread::FRAMES + layout.all_words(self.float) as u64 * 8;
        let word = |word| layout.offset(top, word);
        [
            (thread::SAVED_TOP, map::thread_va(self.tid) + top),
            (thread::HOME, self.home.into()),
            (thread::FRAMES, self.thread_end),
            (word(layout.link), GATE_VA),
            (word(layout.stack), self.stack),
            (word(layout.argument), self.argument),
            (word(layout.pc), self.entry),
            (word(layout.space), A::space(self.home, self.root)),
            (top, self.trap_return),
        ]
    }
}
