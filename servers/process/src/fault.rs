//! Faults in words.

use core::fmt::{self, Write};
use pebble_abi::fault::Cause;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};

/// One fault, as the VM manager recorded it, with the names that were found.
pub struct Fault<'a> {
    pub domain: Asid,
    pub name: &'a str,
    pub thread: ThreadId,
    pub cause: Cause,
    pub value: u64,
    /// Of the instruction.
    pub address: VirtAddr,
    pub symbol: Option<(&'a str, u64)>,
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { domain, name, thread, cause, value, address, symbol } = *self;
        write!(f, "fault: domain {domain} ({}): ", Printable(name))?;
        match cause {
            Cause::Fetch => write!(f, "jump to {value:#x} (page fault)"),
            Cause::Load => write!(f, "load from {value:#x} (page fault)"),
            Cause::Store => write!(f, "store to {value:#x} (page fault)"),
            Cause::FetchNowhere => write!(f, "jump to {value:#x} (no such memory)"),
            Cause::LoadNowhere => write!(f, "load from {value:#x} (no such memory)"),
            Cause::StoreNowhere => write!(f, "store to {value:#x} (no such memory)"),
            Cause::FetchMisaligned => write!(f, "jump to {value:#x} (misaligned)"),
            Cause::LoadMisaligned => write!(f, "load from {value:#x} (misaligned)"),
            Cause::StoreMisaligned => write!(f, "store to {value:#x} (misaligned)"),
            Cause::Illegal => write!(f, "illegal or privileged instruction {value:#x}"),
            Cause::Breakpoint => write!(f, "breakpoint"),
            Cause::Other => write!(f, "trap {value} of the processor"),
            Cause::Call => write!(f, "invokes portal {}, which it does not hold", value as i64),
            Cause::InvocationOverflow => write!(f, "invocation stack overflow"),
            Cause::NoMemory => write!(f, "no memory left for its stack, access to {value:#x}"),
            Cause::StackOverflow => write!(f, "stack overflow, access to {value:#x}"),
            Cause::Handlers => {
                write!(f, "access to {value:#x}, below two fault handlers: a third is not asked")
            }
            Cause::Aborted => write!(f, "aborted"),
        }?;
        match symbol {
            Some((symbol, offset)) => {
                write!(f, " at {}+{offset:#x} ({address})", Printable(Function(symbol)))
            }
            None => write!(f, " at {address}"),
        }?;
        write!(f, ", thread {thread}: killed")
    }
}

/// A function's symbol, without Rust's mangling: the names in it, joined. A full demangler would recurse as
/// deep as a stranger's symbol tells it to.
pub struct Function<'a>(pub &'a str);

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mangled, separator) = match (self.0.strip_prefix("_R"), self.0.strip_prefix("_ZN")) {
            (Some(mangled), _) => (mangled, "_"),
            (_, Some(mangled)) => (mangled, ""),
            _ => return f.write_str(self.0),
        };
        let hash = |name: &str| name.len() == 17 && name.starts_with('h');
        for (n, name) in names(mangled, separator).filter(|name| !hash(name)).enumerate() {
            f.write_str(if n == 0 { "" } else { "::" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// The names in a mangled one: each stands behind its length, perhaps with a separator between. The rest is
/// skipped: one character that says what follows, two for a namespace, a number up to `_` for a disambiguator
/// or a reference back.
fn names<'a>(mut rest: &'a str, separator: &'static str) -> impl Iterator<Item = &'a str> {
    core::iter::from_fn(move || {
        loop {
            match rest.as_bytes().first()? {
                b'0'..=b'9' => {
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let (length, text) = rest.split_at(digits);
                    let length = length.parse().ok()?;
                    let text = text.strip_prefix(separator).unwrap_or(text);
                    let name = text.get(..length)?;
                    rest = &text[length..];
                    if length > 0 {
                        return Some(name);
                    }
                }
                b's' | b'B' => rest = rest.split_once('_')?.1,
                b'N' => rest = rest.get(2..)?,
                _ => rest = rest.get(1..)?,
            }
        }
    })
}

/// A name from a stranger, fit for the console: bounded, and without control characters.
pub struct Printable<T>(pub T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut filter = Filter { to: f, left: LONGEST };
        // An error is that of the filter, which has enough.
        let _ = write!(filter, "{:#}", self.0);
        Ok(())
    }
}

/// Characters of a name that are printed.
const LONGEST: usize = 80;

struct Filter<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    left: usize,
}

impl fmt::Write for Filter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.left == 0 {
                self.to.write_str("...")?;
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.to.write_char(if c.is_control() { '?' } else { c })?;
        }
        Ok(())
    }
}
