//! Why a domain dies, in no processor's words: what handlers of page faults are told, what the process server
//! is, and what a parent sees.

/// The numbers go from component to component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Nothing is mapped there, or not for this.
    Fetch = 1,
    Load = 2,
    Store = 3,
    /// Something is mapped, and no memory there.
    FetchNowhere = 4,
    LoadNowhere = 5,
    StoreNowhere = 6,
    FetchMisaligned = 7,
    LoadMisaligned = 8,
    StoreMisaligned = 9,
    /// Not an instruction, or not for user mode.
    Illegal = 10,
    Breakpoint = 11,
    /// What else the processor traps for.
    Other = 12,
    /// A portal is invoked: a fault when nothing is held at the index.
    Call = 13,
    /// The calls under way leave no room for another.
    InvocationOverflow = 14,
    StackOverflow = 15,
    /// In a range, below as many handlers as one thread may have called.
    Handlers = 16,
    /// It gave up: `abort()`, or a panic.
    Aborted = 17,
    /// There is no page for what its stack has grown by.
    NoMemory = 18,
}

const ALL: [Cause; 18] = [
    Cause::Fetch,
    Cause::Load,
    Cause::Store,
    Cause::FetchNowhere,
    Cause::LoadNowhere,
    Cause::StoreNowhere,
    Cause::FetchMisaligned,
    Cause::LoadMisaligned,
    Cause::StoreMisaligned,
    Cause::Illegal,
    Cause::Breakpoint,
    Cause::Other,
    Cause::Call,
    Cause::InvocationOverflow,
    Cause::StackOverflow,
    Cause::Handlers,
    Cause::Aborted,
    Cause::NoMemory,
];

impl Cause {
    /// The inverse of `as u64`; numbers that nobody has given are [`Other`](Cause::Other).
    pub fn of(number: u64) -> Cause {
        ALL.into_iter().find(|cause| *cause as u64 == number).unwrap_or(Cause::Other)
    }

    /// Exit status of a program that has died of it: 128 and the number of the signal that a Unix would have
    /// sent.
    pub const fn status(self) -> u8 {
        128 + match self {
            Cause::Illegal => 4,
            Cause::Breakpoint => 5,
            Cause::Aborted => 6,
            Cause::FetchMisaligned | Cause::LoadMisaligned | Cause::StoreMisaligned => 7,
            Cause::InvocationOverflow => 16,
            Cause::Call => 31,
            _ => 11,
        }
    }
}

/// Exit status of a program that was killed.
pub const KILLED: u8 = 128 + 9;
