//! Boards (`boards/*.toml`): memory, clock, devices, and how each is emulated.
//!
//! Manifests name devices; where their registers are and which interrupt is theirs is said here alone. The
//! ABI crate takes memory, clock and interrupts of the board that components are compiled for from the same
//! file.

use pebble_abi::map::{self, PAGE};
use pebble_arch::Processor;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    pub name: String,
    pub description: String,
    #[serde(deserialize_with = "processor")]
    pub processor: Processor,
    /// Ticks a second.
    pub time_hz: u64,
    pub memory: Memory,
    pub emulator: Emulator,
    pub debugger: Debugger,
    pub device: BTreeMap<String, Device>,
}

/// Physical addresses, and bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub at: u64,
    pub bytes: u64,
    /// Where the image is loaded.
    pub load: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulator {
    pub program: String,
    /// With blanks between; console and image come behind.
    pub arguments: String,
    /// What comes behind them when its clock is to count instructions, if that alone is not enough to make
    /// two runs the same.
    #[serde(default)]
    pub counting: String,
    #[serde(default)]
    pub status: Status,
}

/// Where a system that powers off leaves its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The emulator exits with it.
    #[default]
    Emulator,
    /// It is the last thing said: the board's way to power off has no place for it.
    Console,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debugger {
    /// The first that there is.
    pub programs: Vec<String>,
    /// What it calls the processor.
    pub architecture: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Which driver it needs.
    pub kind: String,
    pub registers: Vec<Registers>,
    /// Source of its interrupt; 0: it has none.
    #[serde(default)]
    pub interrupt: u16,
}

/// Physical address and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registers {
    pub at: u64,
    pub bytes: u64,
}

impl Registers {
    pub fn holds(self, pa: u64) -> bool {
        pa.wrapping_sub(self.at) < self.bytes
    }

    /// The pages that they are in: less cannot be given to a domain.
    pub fn pages(self) -> Registers {
        let at = self.at / PAGE * PAGE;
        Registers { at, bytes: (self.at - at + self.bytes).next_multiple_of(PAGE) }
    }
}

fn processor<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Processor, D::Error> {
    let name = String::deserialize(d)?;
    Processor::named(&name).ok_or_else(|| {
        let known = Processor::ALL.map(Processor::name).join(", ");
        serde::de::Error::custom(format!("processor = \"{name}\": known are {known}"))
    })
}

/// End of all physical addresses.
const ADDRESSES: u64 = 1 << 56;

/// What is wrong with a board's file.
#[derive(Debug)]
pub enum BoardError {
    Read { path: PathBuf, error: std::io::Error },
    Syntax(toml::de::Error),
    Memory(&'static str),
    Device { name: String, what: &'static str },
}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoardError::Read { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            BoardError::Syntax(error) => write!(f, "{error}"),
            BoardError::Memory(what) => write!(f, "[memory]: {what}"),
            BoardError::Device { name, what } => write!(f, "device '{name}': {what}"),
        }
    }
}

impl std::error::Error for BoardError {}

impl Board {
    pub fn load(path: &Path) -> Result<Board, BoardError> {
        let read = std::fs::read_to_string(path);
        Board::parse(&read.map_err(|error| BoardError::Read { path: path.into(), error })?)
    }

    pub fn parse(text: &str) -> Result<Board, BoardError> {
        let board: Board = toml::from_str(text).map_err(BoardError::Syntax)?;
        board.check()?;
        Ok(board)
    }

    fn check(&self) -> Result<(), BoardError> {
        let Memory { at, bytes, load } = self.memory;
        let end = at.checked_add(bytes).ok_or(BoardError::Memory("it reaches beyond all addresses"))?;
        if [at, bytes, load].iter().any(|n| n % PAGE != 0) || !(at..end).contains(&load) {
            return Err(BoardError::Memory("at, bytes and load must be multiples of 4096, and load inside"));
        }
        if at & !(1 << 31) != 0 || bytes > map::RAM_MAX {
            return Err(BoardError::Memory("it must begin at 0 or 2 GiB, and have no more than 128 MiB"));
        }
        // What a processor fixes is behind.
        let end = at + map::RAM_MAX + map::UPPER_BYTES;
        for (name, device) in &self.device {
            let fail = |what| Err(BoardError::Device { name: name.clone(), what });
            if device.registers.is_empty() || device.registers.iter().any(|r| r.bytes == 0) {
                return fail("it needs registers");
            }
            let beyond = |r: &Registers| r.at.checked_add(r.bytes).is_none_or(|to| to > ADDRESSES);
            if device.registers.iter().any(beyond) {
                return fail("its registers reach beyond all addresses");
            }
            let memory = |r: &Registers| r.pages().at < end && r.pages().at + r.pages().bytes > at;
            if device.registers.iter().any(memory) {
                return fail("this is memory, not a device");
            }
            if device.interrupt >= map::SEM_IRQS {
                return fail("interrupt must be below 64");
            }
            let others = || self.device.iter().filter(|(other, _)| *other != name);
            if device.interrupt != 0 && others().any(|(_, other)| other.interrupt == device.interrupt) {
                return fail("another device has this interrupt");
            }
        }
        Ok(())
    }

    /// The names of its devices, for an error.
    pub fn devices(&self) -> String {
        self.device.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}
