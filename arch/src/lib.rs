//! What a processor must tell everybody who builds page tables, makes threads or reads faults; and each
//! processor's answers.
//!
//! Problem: the image builder, the VM manager, the portal manager and the process server all handle page
//! tables, frames and faults, and none of them should know whose. Strategy: they speak of an [`Arch`], in
//! neutral words ([`Leaf`], [`Layout`], [`Cause`]); a processor implements it, in a folder of its own, where
//! the names of its registers and bits end. Portal code and the nucleus, which are that processor's anyway,
//! use the folder's constants.
//!
//! A component knows its processor when it is compiled; the image builder is told: so the processor is a type
//! here, and no `cfg`.
//!
//! Every folder has the same files:
//!
//! | file | says |
//! |---|---|
//! | `regs` | registers of a call |
//! | `paging` | entries of page tables, names of address spaces |
//! | `frame` | where a frame keeps which register, and how a thread's first one looks |
//! | `fault` | what the processor's causes mean |
//! | `elf` | whose programs are accepted |
#![no_std]
#![forbid(unsafe_code)]

mod frame;
pub mod mips64;
mod paging;
pub mod riscv64;

use core::fmt;
pub use frame::{Layout, Register, Start};
pub use mips64::Mips64;
pub use paging::{Leaf, Reach, SPAN, Whose, slot};
pub use pebble_abi::fault::Cause;
pub use riscv64::Riscv64;

/// Whose instructions code is made of. Which wall it leads through is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Riscv64,
    Mips64,
    X86_64,
}

impl Processor {
    pub const ALL: [Processor; 3] = [Processor::Riscv64, Processor::Mips64, Processor::X86_64];

    /// As folders and files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Processor::Riscv64 => "riscv64",
            Processor::Mips64 => "mips64",
            Processor::X86_64 => "x86_64",
        }
    }

    /// Where portal code sees the root of the page tables of a space.
    pub const fn root_va(self, space: u64) -> u64 {
        match self {
            Processor::Riscv64 => riscv64::paging::root_va(space),
            Processor::Mips64 => mips64::paging::root_va(space),
            // There are no hardware domains.
            Processor::X86_64 => 0,
        }
    }

    pub fn named(name: &str) -> Option<Processor> {
        Processor::ALL.into_iter().find(|processor| processor.name() == name)
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Processor::Riscv64 => "RISC-V",
            Processor::Mips64 => mips64::NAME,
            Processor::X86_64 => "x86-64",
        })
    }
}

/// That for which this is compiled.
#[cfg(target_arch = "riscv64")]
pub type Native = Riscv64;
#[cfg(target_arch = "mips64")]
pub type Native = Mips64;

/// A processor on which there are hardware domains.
///
/// Page tables have three levels of 512 words, and pages 4 KiB, on all of them: the hardware's format where
/// it walks them itself, that of the refill handler where software does. An entry of 0 is empty.
pub trait Arch: Copy + 'static {
    const PROCESSOR: Processor;
    /// The machine's number in an ELF file, and its name there.
    const ELF_MACHINE: u16;
    /// The flags of an ordinary program's file; such as are refused, and why: for tests.
    const ELF_FLAGS: u32;
    const ELF_FLAGS_REFUSED: (u32, &str);
    /// What LLVM calls such files, and the features by which it disassembles all of the code.
    const ELF_FORMAT: &str;
    const DISASSEMBLY: &str;
    /// What systems and components are compiled for, and rustc's flags; floating point is up to each
    /// component's code.
    const RUST_TARGET: &str;
    const RUST_FLAGS: &str;
    /// Of a frame, and of the registers that it keeps.
    const LAYOUT: Layout;
    /// The illegal instruction by which a program gives up.
    const ABORT: u32;
    /// Beside an illegal instruction the processor tells where it is, and not what it is.
    const ILLEGAL_AT: bool;
    /// An entry neither valid nor empty: in a slot, a `g` call waits for what is to come there.
    const WAITS: u64;
    /// Another: nobody may fill or empty the place now.
    const SHUT: u64;
    /// Another: a page comes here when it is touched.
    const PROMISED: u64;
    /// The bit by which the second address of portal code differs from the first, and which no first one has.
    /// A frame whose return code is named by its second address is that of a call whose time is over: the
    /// portal manager has changed its top word, and with the frame that goes. Portal code finds its constants
    /// from wherever it runs.
    const LATE: u64;
    /// Where a root has the direct addresses of the pages of its domain's portal table: offset of the first
    /// of its words. `None`: the trap handler goes through the domain's lowest table, which maps them in any
    /// case.
    const PORTALS: Option<u64>;

    /// Names a lower table.
    fn table(pa: u64) -> u64;
    /// Maps the page at this physical address.
    fn leaf(pa: u64, leaf: Leaf) -> u64;
    fn is_valid(entry: u64) -> bool;
    /// Valid, and names a lower table.
    fn is_table(entry: u64) -> bool;
    /// Whose a valid user leaf is.
    fn whose(entry: u64) -> Whose;
    /// Valid, and the domain's own.
    #[inline(always)]
    fn is_own(entry: u64) -> bool {
        Self::is_valid(entry) && Self::whose(entry) == Whose::Own
    }
    /// A valid user leaf of the domain's own, not executable: what may be lent, claimed or moved.
    fn is_lendable(entry: u64) -> bool;
    /// The same entry, of somebody else's.
    fn marked(entry: u64, whose: Whose) -> u64;
    /// What a valid leaf says; `None`: it is none.
    fn read(entry: u64) -> Option<Leaf>;
    /// The physical address that a valid entry names.
    fn address(entry: u64) -> u64;
    /// The same leaf, of another page.
    fn moved(entry: u64, pa: u64) -> u64;

    /// The physical address at which the page at this address of the upper half always is; `None`: where
    /// the tables say.
    fn fixed(va: u64) -> Option<u64>;
    /// Where privileged code finds the word at a physical address of memory, as `map::direct` says; and the
    /// inverse.
    fn direct(pa: u64) -> u64;
    fn physical(direct: u64) -> u64;

    /// What the processor is told to change to the address space of a domain.
    fn space(asid: u16, root: u64) -> u64;
    /// Whose it is.
    fn asid(space: u64) -> u16;

    /// The instructions that invoke the portal at an index without a word of the caller's: those of the gate
    /// page.
    fn gate(index: usize) -> [u32; 2];
    /// What a trap's cause means, and what is to be told beside it: an address, an instruction, or of what
    /// the processor traps for besides its number. Cause and value are as the processor says them; `pc`:
    /// where it stood.
    fn cause(code: u64, value: u64, pc: u64) -> (Cause, u64);
    /// Whether that of an interrupt is the clock's.
    fn is_timer(code: u64) -> bool;
    /// Whether code with these flags of an ELF file uses floating-point registers; an error says what it
    /// needs that there is not.
    fn uses_float(elf_flags: u32) -> Result<bool, &'static str>;
    /// Whether these bytes, which precede an address, end with a call that returns there.
    fn follows_call(before: &[u8]) -> bool;
    /// Whether an instruction may begin at this address.
    fn is_aligned(address: u64) -> bool;
}
