//! What the recorder must know of a processor: five questions about instructions and addresses.

use pebble_abi::map;
use pebble_arch::{Arch, Mips64, Processor as Kind, Riscv64};
use serde::{Deserialize, Serialize};

use crate::{mips64, riscv64};

/// What an instruction tells of the guest. Registers are numbers below 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Loads a double word into this register.
    Load(u8),
    /// Enters the address space that this register names, which was loaded into it before.
    Enter(u8),
    /// Reads the counter of instructions.
    Count,
}

/// Whose code is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Region {
    User,
    Nucleus,
    Portal,
    /// Of the board, or of the nucleus before there are address spaces.
    Firmware,
}

/// A processor's answers.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    /// What privileged code does.
    meaning: fn(u32) -> Option<Meaning>,
    leaves: fn(u32) -> bool,
    /// What user mode does.
    counts: fn(u32) -> bool,
    asid: fn(u64) -> u16,
    late: u64,
}

impl Processor {
    /// The one of this name; `None`: there are no systems for it.
    pub fn named(name: &str) -> Option<Processor> {
        match Kind::named(name)? {
            Kind::Riscv64 => {
                Some(Processor::new::<Riscv64>(riscv64::meaning, riscv64::leaves, riscv64::counts))
            }
            Kind::Mips64 => Some(Processor::new::<Mips64>(mips64::meaning, mips64::leaves, mips64::counts)),
            Kind::X86_64 => None,
        }
    }

    fn new<A: Arch>(
        meaning: fn(u32) -> Option<Meaning>,
        leaves: fn(u32) -> bool,
        counts: fn(u32) -> bool,
    ) -> Processor {
        Processor { meaning, leaves, counts, asid: A::asid, late: A::LATE }
    }

    /// What is to be noticed of an instruction in such code.
    pub fn meaning(&self, region: Region, word: u32) -> Option<Meaning> {
        match region {
            Region::User => (self.counts)(word).then_some(Meaning::Count),
            Region::Nucleus | Region::Portal => (self.meaning)(word),
            Region::Firmware => None,
        }
    }

    /// Whether code that ends with these bytes ends with the way out into user mode.
    pub fn leaves(&self, code: &[u8]) -> bool {
        code.last_chunk().is_some_and(|word| (self.leaves)(u32::from_le_bytes(*word)))
    }

    /// The number of the domain whose address space this is.
    pub fn asid(&self, space: u64) -> u16 {
        (self.asid)(space)
    }

    pub fn region(&self, address: u64) -> Region {
        let portals = map::CODE_VA..map::CODE_VA + map::CODE_BYTES;
        match address {
            ..map::USER_END => Region::User,
            _ if portals.contains(&(address & !self.late)) => Region::Portal,
            map::NUCLEUS_VA..map::KDATA_VA => Region::Nucleus,
            _ => Region::Firmware,
        }
    }

    /// Of portal code's two addresses the first.
    pub fn early(&self, region: Region, address: u64) -> u64 {
        if region == Region::Portal { address & !self.late } else { address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_regions() {
        for kind in [Kind::Riscv64, Kind::Mips64] {
            let processor = Processor::named(kind.name()).unwrap();
            assert_eq!(processor.region(map::IMAGE_VA), Region::User);
            assert_eq!(processor.region(map::NUCLEUS_VA + 0x40), Region::Nucleus);
            assert_eq!(processor.region(map::CODE_VA), Region::Portal);
            assert_eq!(processor.region(map::CODE_VA | processor.late), Region::Portal);
            assert_eq!(processor.region(0x8000_0000), Region::Firmware);
            let late = map::CODE_VA + 8 | processor.late;
            assert_eq!(processor.early(Region::Portal, late), map::CODE_VA + 8);
        }
        assert!(Processor::named("x86_64").is_none() && Processor::named("vax").is_none());
    }
}
