//! The words at the start of the boot information from which the scheduler learns its threads and semaphores.
//!
//! Word 0: bytes of the rest; word 1: threads; word 2: semaphores; then a word for each.

/// First word of the first thread.
pub const FIRST: usize = 3;

pub const fn thread(tid: u16, priority: u8, home: u16) -> u64 {
    tid as u64 | (priority as u64) << 16 | (home as u64) << 32
}

/// Thread, priority, home.
pub const fn thread_parts(word: u64) -> (u16, u8, u16) {
    (word as u16, (word >> 16) as u8, (word >> 32) as u16)
}

pub const fn semaphore(id: u16, owner: u16, interruptible: bool) -> u64 {
    id as u64 | (owner as u64) << 16 | (interruptible as u64) << 32
}

/// Number, owner, interruptible.
pub const fn semaphore_parts(word: u64) -> (u16, u16, bool) {
    (word as u16, (word >> 16) as u16, word >> 32 & 1 == 1)
}
