//! The words at the start of the boot information from which the scheduler learns its threads and semaphores.
//!
//! Word 0: bytes of the rest; word 1: threads; word 2: semaphores; then a word for each.

/// Programs have priorities below this; from here on are components of the image.
pub const PROGRAMS: u8 = 16;

/// First word of the first thread.
pub const FIRST: usize = 3;

pub const fn thread(tid: u16, priority: u8, home: u16) -> u64 {
    tid as u64 | (priority as u64) << 16 | (home as u64) << 32
}

/// Thread, priority, home.
pub const fn thread_parts(word: u64) -> (u16, u8, u16) {
    (word as u16, (word >> 16) as u8, (word >> 32) as u16)
}

/// What a wait on a semaphore is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// Not cut short when the waiting thread's domain dies, while its caller lives.
    #[default]
    Patient = 0,
    Interruptible = 1,
    /// Patient, and for a lock of a component of the image: some ready thread holds it, and must run.
    Lock = 2,
}

impl Wait {
    /// Of the number that says it; any other is patient.
    pub const fn of(number: u64) -> Wait {
        match number {
            1 => Wait::Interruptible,
            2 => Wait::Lock,
            _ => Wait::Patient,
        }
    }
}

pub const fn semaphore(id: u16, owner: u16, wait: Wait) -> u64 {
    id as u64 | (owner as u64) << 16 | (wait as u64) << 32
}

/// Number, owner, what a wait is.
pub const fn semaphore_parts(word: u64) -> (u16, u16, Wait) {
    (word as u16, (word >> 16) as u16, Wait::of(word >> 32))
}
