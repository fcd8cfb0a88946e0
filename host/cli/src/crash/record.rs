//! Crashes as a console tells of them: lines among lines of others, of which any may be missing, cut off or
//! made up.
//!
//! `pebble_process::crash` says what the lines are. Nothing here is believed: what does not read as it should
//! is left out, and everything is bounded.

use std::collections::BTreeMap;

use pebble_arch::Register;

/// Registers that are the first of every processor's, in the [`Layout`](pebble_arch::Layout)'s order.
pub const PC: usize = 0;
pub const LINK: usize = 1;
pub const STACK: usize = 2;
/// Lines of one crash, and bytes of a line, that are kept.
const MOST_LINES: usize = 64;
const MOST_BYTES: usize = 512;
/// Crashes that are being told of at once.
const MOST_OPEN: usize = 8;

/// A portal call that was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub interface: String,
    pub domain: u64,
    pub path: String,
    /// Where the caller goes on.
    pub address: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub domain: u64,
    pub name: String,
    /// What happened, in the system's words.
    pub what: String,
    pub path: String,
    /// The number of the code; of a component of the image there is none.
    pub text: Option<u64>,
    /// In the layout's order.
    pub registers: Vec<Option<u64>>,
    pub calls: Vec<Call>,
    /// Words of the stack, by address.
    pub stack: BTreeMap<u64, u64>,
    /// All of it has been seen.
    pub whole: bool,
    /// The lines, as they came.
    pub lines: Vec<String>,
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The number of a domain, and what follows the separator behind it.
fn domain<'a>(text: &'a str, separator: &str) -> Option<(u64, &'a str)> {
    let (number, rest) = text.split_once(separator)?;
    Some((number.parse().ok()?, rest))
}

impl Record {
    /// From the line that says what happened.
    fn begun(line: &str, registers: usize) -> Option<Record> {
        let (domain, rest) = domain(line.strip_prefix("fault: domain ")?, " (")?;
        let (name, what) = rest.split_once("): ")?;
        Some(Record {
            domain,
            name: name.into(),
            what: what.into(),
            registers: vec![None; registers],
            lines: vec![line.into()],
            ..Record::default()
        })
    }

    fn add(&mut self, line: &str, words: &str, all: &[Register]) {
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.into());
            let _ = self.read(words, all);
        }
    }

    fn read(&mut self, words: &str, all: &[Register]) -> Option<()> {
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "program" => {
                let (path, text) = rest.split_once(" text ")?;
                self.path = path.into();
                self.text = hex(text);
            }
            "call" => {
                let (interface, rest) = rest.split_once(" from domain ")?;
                let (domain, rest) = domain(rest, " (")?;
                let (path, address) = rest.split_once(") at ")?;
                let (interface, path, address) = (interface.into(), path.into(), hex(address)?);
                self.calls.push(Call { interface, domain, path, address });
            }
            "stack" => {
                let sp = self.registers[STACK]?;
                for (offset, word) in
                    rest.split(' ').filter_map(|pair| pair.strip_prefix('+')?.split_once(':'))
                {
                    self.stack.insert(sp.checked_add(hex(offset)?)?, hex(word)?);
                }
            }
            "end" => self.whole = true,
            _ => {
                for (name, value) in words.split(' ').filter_map(|pair| pair.split_once('=')) {
                    let number = all.iter().position(|known| known.name == name)?;
                    self.registers[number] = hex(value);
                }
            }
        }
        Some(())
    }

    /// The registers that were not told are zero, if any was told.
    pub fn register(&self, number: usize) -> Option<u64> {
        self.registers[PC].and(Some(self.registers[number].unwrap_or(0)))
    }
}

/// Finds crashes in what a console shows, as it comes.
pub struct Finder {
    /// The processor's, which are told by their names.
    registers: &'static [Register],
    line: Vec<u8>,
    open: Vec<Record>,
}

impl Finder {
    pub fn new(registers: &'static [Register]) -> Self {
        Finder { registers, line: Vec::new(), open: Vec::new() }
    }

    /// Takes the next bytes, and gives those crashes that are told to their end.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Record> {
        let mut whole = Vec::new();
        for byte in bytes {
            if *byte != b'\n' {
                if self.line.len() < MOST_BYTES {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            whole.extend(self.take(&line));
        }
        whole
    }

    /// Those of which the end is missing.
    pub fn finish(&mut self) -> Vec<Record> {
        let mut left = self.feed(b"\n");
        left.append(&mut self.open);
        left
    }

    /// A line may follow something that did not end its own: a prompt.
    fn take(&mut self, line: &str) -> Option<Record> {
        let begins = |text: &str| line.find(text).map(|at| &line[at..]);
        if let Some(record) =
            begins("fault: domain ").and_then(|line| Record::begun(line, self.registers.len()))
        {
            let old = self.open.iter().position(|open| open.domain == record.domain);
            let old = old.or((self.open.len() == MOST_OPEN).then_some(0)).map(|at| self.open.remove(at));
            self.open.push(record);
            return old;
        }
        let line = begins("crash ")?;
        let (domain, words) = domain(&line["crash ".len()..], ": ")?;
        let at = self.open.iter().position(|open| open.domain == domain)?;
        self.open[at].add(line, words, self.registers);
        self.open[at].whole.then(|| self.open.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pebble_arch::{Arch, Riscv64};
    use proptest::prelude::*;

    fn finder() -> Finder {
        Finder::new(Riscv64::LAYOUT.registers)
    }

    const TOLD: &str = "pebble> fault: domain 15 (deep): store to 0x8 (page fault) at third+0x0 (0x100f0), thread 10: killed\r
crash 15: program /bin/deep text e5c0132a642e52ef\r
crash 15: pc=100f0 ra=100e8 sp=21e4fda0\r
somebody else\r
crash 15: call deep.call from domain 16 (/bin/client) at 0x112e4\r
crash 15: seems called from second+0x2a\r
crash 15: stack +28:100b6 +38:100a0\r
crash 15: end\r
";

    #[test]
    fn a_crash_is_found_among_other_lines() {
        let mut finder = finder();
        let found = finder.feed(TOLD.as_bytes());
        let [record] = &found[..] else { panic!("{found:?}") };
        assert_eq!((record.domain, &*record.name, &*record.path), (15, "deep", "/bin/deep"));
        assert_eq!(record.text, Some(0xe5c0_132a_642e_52ef));
        assert_eq!(
            [PC, LINK, STACK, 3].map(|n| record.register(n)),
            [0x100f0, 0x100e8, 0x21e4_fda0, 0].map(Some)
        );
        assert_eq!(record.calls[0].address, 0x112e4);
        assert_eq!(record.stack, [(0x21e4_fdc8, 0x100b6), (0x21e4_fdd8, 0x100a0)].into());
        assert!(record.whole && finder.finish().is_empty());
    }

    #[test]
    fn one_that_is_cut_off_is_there_at_the_end() {
        let mut finder = finder();
        assert!(finder.feed(&TOLD.as_bytes()[..TOLD.len() - 40]).is_empty());
        assert!(finder.finish().iter().any(|record| !record.whole && record.text.is_some()));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_without_harm(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            piece in 1_usize..40, times in 1_usize..30,
        ) {
            let mut bytes = TOLD.repeat(times).into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut finder = finder();
            let mut found: Vec<_> = bytes.chunks(piece).flat_map(|piece| finder.feed(piece)).collect();
            found.append(&mut finder.finish());
            for record in &found {
                prop_assert!(record.lines.len() <= MOST_LINES);
                prop_assert!(record.lines.iter().all(|line| line.chars().all(|c| !c.is_control())));
            }
        }
    }
}
