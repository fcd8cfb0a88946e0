//! Faults in words.

use core::fmt;

/// Causes beyond those of the hardware (`scause`).
pub const NOT_HELD: u64 = 64;
pub const INVOCATION_STACK: u64 = 65;
pub const USER_STACK: u64 = 66;

/// Exit status of a program that was killed.
pub const KILLED: u8 = 128 + 9;

/// Exit status of a program that faulted: 128 and the cause. No hardware cause is 9 (a call from supervisor mode), so it is
/// never mistaken for [`KILLED`].
pub const fn status(cause: u64) -> u8 {
    128 | (if cause < 128 { cause } else { 127 }) as u8
}

/// One fault, as the VM manager recorded it, with the names that were found.
pub struct Fault<'a> {
    pub domain: u16,
    pub name: &'a str,
    pub thread: u16,
    pub cause: u64,
    pub value: u64,
    /// Of the instruction.
    pub address: u64,
    pub symbol: Option<(&'a str, u64)>,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { domain, name, thread, cause, value, address, symbol } = *self;
        write!(f, "fault: domain {domain} ({}): ", Printable(name))?;
        match cause {
            0 => write!(f, "jump to {value:#x} (misaligned)"),
            1 => write!(f, "jump to {value:#x} (no such memory)"),
            2 => write!(f, "illegal or privileged instruction {value:#x}"),
            3 => write!(f, "breakpoint"),
            4 => write!(f, "load from {value:#x} (misaligned)"),
            5 => write!(f, "load from {value:#x} (no such memory)"),
            6 => write!(f, "store to {value:#x} (misaligned)"),
            7 => write!(f, "store to {value:#x} (no such memory)"),
            12 => write!(f, "jump to {value:#x} (page fault)"),
            13 => write!(f, "load from {value:#x} (page fault)"),
            15 => write!(f, "store to {value:#x} (page fault)"),
            NOT_HELD => write!(f, "invokes portal {value}, which it does not hold"),
            INVOCATION_STACK => write!(f, "invocation stack overflow"),
            USER_STACK => write!(f, "stack overflow, access to {value:#x}"),
            _ => write!(f, "cause {cause}, value {value:#x}"),
        }?;
        match symbol {
            Some((symbol, offset)) => write!(f, " at {}+{offset:#x} ({address:#x})", Printable(symbol)),
            None => write!(f, " at {address:#x}"),
        }?;
        write!(f, ", thread {thread}: killed")
    }
}

/// A name from a stranger, fit for the console: bounded, and without control characters.
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 64;
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(LONGEST) {
            fmt::Write::write_char(f, if c.is_control() { '?' } else { c })?;
        }
        if chars.next().is_some() { f.write_str("...") } else { Ok(()) }
    }
}
