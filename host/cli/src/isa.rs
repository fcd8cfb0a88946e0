//! What the host tool asks of the processor of a board.
//!
//! A processor is a type ([`Arch`]), and the board is known when the tool runs: here the one becomes a table
//! of the other's answers.

use pebble_arch::{Arch, Layout, Mips64, Processor, Riscv64};
use pebble_image::elf::{Component, ElfError};
use pebble_process::PAGE_LIMIT;
use pebble_process::crash::Code;
use pebble_process::elf::{Image, Problem};

#[derive(Debug)]
pub struct Isa {
    /// What components are compiled for: rustc's name, or a file of the project that describes it.
    pub rust_target: &'static str,
    pub rust_flags: &'static str,
    /// The machine's number in an ELF file.
    pub machine: u16,
    /// What LLVM calls files of code, and the features by which it disassembles them.
    pub elf_format: &'static str,
    pub disassembly: &'static str,
    pub layout: Layout,
    /// The illegal instruction by which a program gives up.
    pub abort: u32,
    /// A program's file, at most of so many pages.
    pub parse: for<'a> fn(&'a [u8], u64) -> Result<Image<'a>, Problem>,
    /// A component's file.
    pub component: fn(&[u8]) -> Result<Component, ElfError>,
    returns: fn(&Code, u64) -> bool,
}

impl Isa {
    /// `None`: there are no systems for it.
    pub fn of(processor: Processor) -> Option<&'static Isa> {
        match processor {
            Processor::Riscv64 => Some(&const { Isa::new::<Riscv64>() }),
            Processor::Mips64 => Some(&const { Isa::new::<Mips64>() }),
            Processor::X86_64 => None,
        }
    }

    const fn new<A: Arch>() -> Isa {
        Isa {
            rust_target: A::RUST_TARGET,
            rust_flags: A::RUST_FLAGS,
            machine: A::ELF_MACHINE,
            elf_format: A::ELF_FORMAT,
            disassembly: A::DISASSEMBLY,
            layout: A::LAYOUT,
            abort: A::ABORT,
            parse: |file, pages| Image::parse::<A>(file, pages),
            component: Component::parse::<A>,
            returns: |code, address| code.returns::<A>(address),
        }
    }

    /// A program's file, as large as the process server takes one.
    pub fn program<'a>(&self, file: &'a [u8]) -> Result<Image<'a>, Problem> {
        (self.parse)(file, PAGE_LIMIT)
    }

    /// Whether a function of the program may return to this address.
    pub fn returns(&self, program: &Image, address: u64) -> bool {
        (self.returns)(&Code(Some(program)), address)
    }
}
